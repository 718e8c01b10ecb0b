// Where a person writes: text, files, and which model answers.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { visible } from "./format.js";
import { icon } from "./icons.js";

const MOST_BYTES = 8_000_000;
const TALLEST = 260;

function read(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(reader.error);
    reader.onload = () => resolve(String(reader.result).replace(/^data:[^,]*,/, ""));
    reader.readAsDataURL(file);
  });
}

function takes(accepted, type) {
  return accepted.some((each) => each === type || (each.endsWith("/*") && type.startsWith(each.slice(0, -1))));
}

function ModelPicker({ models, model, onModel, isDisabled }) {
  if (models.length < 2) return models.length ? html`<span class="model">${visible(models[0].name)}</span>` : null;
  const providers = Map.groupBy(models, ({ provider }) => provider);
  return html`<label class="picker">
    <span class="hidden">Model</span>
    <select value=${model} disabled=${isDisabled} onChange=${(event) => onModel(event.target.value)}>
      ${[...providers].map(([provider, all]) => html`<optgroup label=${provider}>${all.map(({ name }) => html`<option value=${name}>${name.split(":").slice(1).join(":") || name}</option>`)}</optgroup>`)}
    </select>${icon("chevron")}
  </label>`;
}

export function Composer({ agent, model, onModel, isRunning, isWaiting, onSend, onStop, threadId }) {
  const [text, setText] = useState("");
  const [files, setFiles] = useState([]);
  const [fault, setFault] = useState("");
  const area = useRef();
  const picker = useRef();
  const accepted = agent.attachments ?? [];
  useEffect(() => area.current?.focus(), [threadId]);
  useLayoutEffect(() => {
    area.current.style.height = "auto";
    area.current.style.height = `${Math.min(area.current.scrollHeight, TALLEST)}px`;
  }, [text]);
  const add = async (chosen) => {
    setFault("");
    for (const file of chosen) {
      if (!takes(accepted, file.type)) setFault(`The model does not take ${file.name} (${file.type || "unknown type"}).`);
      else if (file.size > MOST_BYTES) setFault(`${file.name} is larger than ${MOST_BYTES / 1_000_000} MB.`);
      else {
        const data = await read(file);
        setFiles((before) => [...before, { name: file.name, media_type: file.type, data }]);
      }
    }
  };
  const canSend = !isRunning && !isWaiting && (text.trim() || files.length);
  const send = () => {
    if (!canSend) return;
    onSend(text.trim(), files);
    setText("");
    setFiles([]);
  };
  const onKey = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  };
  const onPaste = (event) => {
    if (!event.clipboardData.files.length) return;
    event.preventDefault();
    add(event.clipboardData.files);
  };
  return html`<form class="composer" onSubmit=${(event) => (event.preventDefault(), send())}
      onDragOver=${(event) => event.preventDefault()} onDrop=${(event) => (event.preventDefault(), add(event.dataTransfer.files))}>
    ${files.length > 0 &&
    html`<ul class="files">${files.map((file, n) => html`<li class="chip">${icon("clip")}${visible(file.name)}
      <button type="button" class="quiet" aria-label=${`Remove ${file.name}`} onClick=${() => setFiles(files.filter((_, other) => other !== n))}>${icon("cross")}</button></li>`)}</ul>`}
    ${fault && html`<p class="wrong" role="alert">${fault}</p>`}
    <textarea ref=${area} rows="1" value=${text} aria-label="Message" placeholder=${isWaiting ? "Answer above first" : `Message ${agent.title || agent.name}`}
      onInput=${(event) => setText(event.target.value)} onKeyDown=${onKey} onPaste=${onPaste} />
    <div class="bar">
      ${accepted.length > 0 &&
      html`<input type="file" multiple hidden ref=${picker} accept=${accepted.join(",")} onChange=${(event) => (add([...event.target.files]), (event.target.value = ""))} />
        <button type="button" class="round" title="Attach files" aria-label="Attach files" onClick=${() => picker.current.click()}>${icon("clip")}</button>`}
      <${ModelPicker} models=${agent.models} model=${model} onModel=${onModel} isDisabled=${isRunning} />
      <span class="space" />
      ${isRunning
        ? html`<button type="button" class="send" title="Stop (Esc)" aria-label="Stop" onClick=${onStop}>${icon("stop")}</button>`
        : html`<button class="send" title="Send (Enter)" aria-label="Send" disabled=${!canSend}>${icon("up")}</button>`}
    </div>
  </form>`;
}
