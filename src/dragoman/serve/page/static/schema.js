// Says what in a value does not fit a JSON Schema. It knows what schemas of tools have: types, required
// fields, further fields, lists of values and items. The server checks all of it again.

const TYPES = {
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  array: Array.isArray,
  string: (value) => typeof value === "string",
  boolean: (value) => typeof value === "boolean",
  number: (value) => typeof value === "number",
  integer: Number.isInteger,
  null: (value) => value === null,
};
const DEEPEST = 12;

function target(schema, root) {
  const name = schema?.$ref?.match(/^#\/(?:\$defs|definitions)\/([^/]+)$/)?.[1];
  return name ? (root.$defs?.[name] ?? root.definitions?.[name]) : schema;
}

function objectFaults(value, schema, where, root, depth) {
  const known = schema.properties ?? {};
  const missing = (schema.required ?? []).filter((name) => !(name in value));
  const extra = schema.additionalProperties === false ? Object.keys(value).filter((name) => !(name in known)) : [];
  return [
    ...missing.map((name) => `${where}${name} is missing.`),
    ...extra.map((name) => `${where}${name} is not known.`),
    ...Object.keys(known).flatMap((name) => (name in value ? faultsIn(value[name], known[name], `${where}${name}`, root, depth + 1) : [])),
  ];
}

function faultsIn(value, given, name, root, depth) {
  const schema = target(given, root);
  if (!schema || depth > DEEPEST) return [];
  const types = [schema.type ?? []].flat();
  if (types.length && !types.some((type) => TYPES[type]?.(value))) return [`${name || "The value"} must be ${types.join(" or ")}.`];
  if (schema.enum && !schema.enum.includes(value)) return [`${name || "The value"} must be one of ${schema.enum.join(", ")}.`];
  const ways = schema.anyOf ?? schema.oneOf;
  if (ways?.length) {
    const each = ways.map((way) => faultsIn(value, way, name, root, depth + 1));
    return each.some((faults) => !faults.length) ? [] : each[0];
  }
  if (TYPES.object(value)) return objectFaults(value, schema, name ? `${name}.` : "", root, depth);
  if (Array.isArray(value) && schema.items) {
    return value.flatMap((item, n) => faultsIn(item, schema.items, `${name}[${n}]`, root, depth + 1));
  }
  return [];
}

export const faultsOf = (value, schema) => (schema ? faultsIn(value, schema, "", schema, 0) : []);
