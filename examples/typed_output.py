"""An answer that is a value of a type, without an event loop."""

from pydantic import BaseModel

from dragoman import Agent


class City(BaseModel):
    name: str
    country: str


def main() -> None:
    with Agent() as agent:
        result = agent.send_for_sync("Name a city in Norway.", City)
    print(result.output, result.usage)


if __name__ == "__main__":
    main()
