"""A tool that somebody must allow: the run ends, the conversation is stored, and another send goes
on with it."""

from dragoman import Agent, Settings, dump_messages, load_messages, tool


@tool(requires_approval=True)
def delete_file(path: str) -> str:
    """Deletes a file."""
    return f"{path} is deleted"


def main() -> None:
    with Agent(tools=[delete_file]) as agent:
        result = agent.send_sync("Delete notes.txt.", settings=Settings(tool_choice="required"))
        stored = dump_messages(result.messages)
    for interrupt in result.pending:
        print("asks for:", interrupt.call)
    with Agent(tools=[delete_file]) as agent:  # a week later, in another process
        answers = [interrupt.approve() for interrupt in result.pending]
        result = agent.send_sync(None, history=load_messages(stored), resume=answers)
        print(result.messages[0].tool_results[0].result)  # notes.txt is deleted


if __name__ == "__main__":
    main()
