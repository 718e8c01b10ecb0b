"""Texts as vectors, searched by meaning."""

from dragoman import Agent, most_similar

NOTES = ["Rent is due on the first.", "The cat eats at eight."]


def main() -> None:
    with Agent("local") as agent:
        found = agent.embed_documents_sync(NOTES).embeddings
        query = agent.embed_query_sync("When do I feed the pet?").embeddings
    print(NOTES[most_similar(query, found)[0]])


if __name__ == "__main__":
    main()
