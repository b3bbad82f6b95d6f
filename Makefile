# Every target creates .venv/ from requirements.lock when it is missing or older than the lock.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= auto
TIMES ?= 50
READER ?= all
INPUTS ?= 10000
SEED ?= 0
# Most of the time of checks and examples is XLA's; its older emitters for the CPU compile faster (JAX 0.11 has none, and
# ends at a flag that it does not know), and checks run once what they compile. `convattn verify` by itself compiles as
# JAX does by default.
OLDER_EMITTERS = $$($(BIN)/python -c 'import jaxlib as j; print("--xla_cpu_use_fusion_emitters=false" * (j.__version__ < "0.11"))')
COMPILE_QUICKLY = XLA_FLAGS="$$(echo $(OLDER_EMITTERS) $(XLA_FLAGS))" JAX_DISABLE_MOST_OPTIMIZATIONS=true
# A shell that sets this would make every process compile all sources again.
unexport PYTHONDONTWRITEBYTECODE
# A worker that has nothing left takes tests from another, neighbours together: they share fixtures.
TEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

STRICT_TESTS := tests/sac tests/fast tests/encodings $(wildcard tests/nnx/test_*.py) tests/nnx/layers tests/nnx/vision_transformer/test_state_dict.py \
  $(patsubst %,tests/operators/test_%.py,arrays convolution patches scores)

# Every test that needs PyTorch or ONNX; in the other environments it is left out.
TORCH_TESTS := tests/pytorch tests/networks/test_onnx.py tests/initialization/test_torch.py \
  tests/nnx/vision_transformer/test_state_dict.py $(patsubst %,tests/experiments/test_%.py,plain_layers training_bench) \
  $(patsubst %,tests/diagnosis/test_%.py,layers libraries transformers) \
  $(patsubst %,tests/networks/weights/test_%.py,layouts pickles reparametrisation)
TORCH_BIN := .venv-torch/bin

TEXLIVE := texlive-latex-base texlive-latex-recommended
SECOND := build/second_checker
COQ_PACKAGES := coq libcoq-mathcomp-algebra libcoq-mathcomp-algebra-tactics libcoq-mathcomp-zify
OCAML_PACKAGES := ocaml-nox ocaml-findlib libzarith-ocaml-dev

.DEFAULT_GOAL := help
.PHONY: help accelerator install docs note verify report quick prove check second-checker audit experiment two-phase network bench bench-training orders test strict test-all soak crash fuzz torch coverage mutants-of lint types doctest certificates corpora ledger data lock build clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

install: $(STAMP) ## create .venv/ from the lock, with .venv/bin/convattn

verify: $(STAMP) ## check every claim of the ledger and print it; the report is build/report/index.html
	$(COMPILE_QUICKLY) $(BIN)/convattn verify --report build/report

report: verify ## the same

build/report/index.html: $(shell find proofs certificates src -name '*.py' -o -name '*.v' -o -name '*.json' -o -path '*/page/assets/*' -type f)
	$(MAKE) verify

quick: $(STAMP) ## the same on the quick evidence only
	$(COMPILE_QUICKLY) $(BIN)/convattn verify --quick

prove: $(STAMP) ## check the machine-checked proofs with Coq, into build/prove/
	$(BIN)/convattn prove

check: ## re-check the committed certificates with the standard library alone
	PYTHONPATH=src $(PYTHON) -m convattn_check certificates/*.json

# Timestamps are kept, so that only what has changed is compiled again.
$(SECOND)/second-checker: $(wildcard second_checker/* proofs/coq/foundation/*.v proofs/coq/checker/*.v proofs/coq/extracted/*.v)
	@command -v coqc >/dev/null && ocamlfind query zarith >/dev/null 2>&1 || { echo "make second-checker needs Coq, OCaml and zarith: apt-get install --no-install-recommends $(COQ_PACKAGES) $(OCAML_PACKAGES)" >&2; exit 1; }
	mkdir -p $(SECOND)/coq
	cp -Rp proofs/coq/foundation proofs/coq/checker proofs/coq/extracted $(SECOND)/coq
	cp -p second_checker/* $(SECOND)
	cd $(SECOND)/coq && coq_makefile -Q . Convattn -arg -w -arg none */*.v -o Makefile.coq
	$(MAKE) -C $(SECOND)/coq -f Makefile.coq $(patsubst proofs/coq/%.v,%.vo,$(wildcard proofs/coq/extracted/*.v))
	cd $(SECOND) && coqc -Q coq Convattn -w none extraction.v
	cd $(SECOND) && ocamlfind ocamlopt -package zarith,unix -linkpkg -o second-checker -w -39 decisions.mli decisions.ml canonical_json.ml claims.ml main.ml

second-checker: $(SECOND)/second-checker ## build the checker that is proved in Coq, and run it over the certificates
	$(SECOND)/second-checker certificates/*.json || [ $$? -eq 3 ]

audit: $(STAMP) ## what this device's arithmetic really does
	$(BIN)/convattn audit

experiment: $(STAMP) ## train the small default model and draw its figures, into build/slice/
	rm -rf build/slice
	$(BIN)/python experiments/cifar.py --output-dir build/slice

two-phase: $(STAMP) ## train convolutions, turn them into attention, go on training, into build/two-phase/
	rm -rf build/two-phase
	$(BIN)/python experiments/two_phase.py --output-dir build/two-phase

network: $(STAMP) ## train a small ResNet and turn all of it into attention layers, into build/network/
	rm -rf build/network
	$(BIN)/python experiments/cifar.py --config resnet_slice --output-dir build/network
	$(BIN)/convattn convert network build/network --output build/network/attention.safetensors --json build/network/conversion.json

bench: $(STAMP) ## time and memory of the back ends beside dense attention and lax.conv, into build/bench/
	$(BIN)/python experiments/bench.py --output-dir build/bench
	$(BIN)/python experiments/transformation_time.py --json build/bench/transformation.json

bench-training: $(STAMP) ## a training step beside its PyTorch form and its plain form, into build/bench/
	$(BIN)/python experiments/training_bench.py --json build/bench/training.json

accelerator: $(STAMP) ## check, time and train on this device in MINUTES=25, into build/accelerator/; again: it goes on
	$(BIN)/convattn accelerator --minutes $(or $(MINUTES),25) --output build/accelerator $(if $(DATA),--data $(DATA))

orders: $(STAMP) ## time the three orders of a structured convolution against the cost model
	$(BIN)/python experiments/contraction_orders.py

test: $(STAMP) ## run the tests, but for the slow ones, in parallel
	$(TEST) -m "not slow and not browser"

# Under the transfer guard JAX itself refuses Python numbers in operations that are not compiled, of
# which tests are full: tests/fast/test_strict_flags.py sets it where it can hold.
strict: $(STAMP) ## run the tests of operators, back ends, encodings and modules, with JAX's strict promotion of dtypes and ranks
	JAX_NUMPY_DTYPE_PROMOTION=strict JAX_NUMPY_RANK_PROMOTION=raise $(TEST) $(STRICT_TESTS)

test-all: $(STAMP) ## run all tests in parallel, with more generated examples
	HYPOTHESIS_PROFILE=ci $(TEST)

soak: $(STAMP) ## run the property tests with fresh seeds, MINUTES=60 by default, and print what fails as examples
	$(BIN)/python scripts/reliability/soak.py --minutes $(or $(MINUTES),60)

crash: $(STAMP) ## kill the writer of files at each of its calls, and TIMES=50 training runs at four random moments each
	$(BIN)/python scripts/reliability/crash.py
	CONVATTN_KILLED_RUNS=$(TIMES) $(COMPILE_QUICKLY) $(TEST) -q tests/lab/training/test_killed_runs.py

fuzz: $(STAMP) ## give damaged files to a reader of outside data (all by default): make fuzz READER=npz INPUTS=10000 SEED=0
	$(COMPILE_QUICKLY) OPENBLAS_NUM_THREADS=1 $(BIN)/python scripts/reliability/fuzz.py $(READER) --inputs $(INPUTS) --seed $(SEED)

.venv-torch/.installed: requirements-torch.txt pyproject.toml
	$(PYTHON) -m venv --clear .venv-torch
	$(TORCH_BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-torch.txt --editable .
	@touch $@

torch: .venv-torch/.installed ## run every test that needs PyTorch or ONNX, in an environment of its own; one that is skipped fails
	$(COMPILE_QUICKLY) CONVATTN_NO_SKIPS=1 $(TORCH_BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TORCH_TESTS)
	$(COMPILE_QUICKLY) $(TORCH_BIN)/python -m pytest -q --doctest-modules src/convattn/torch src/convattn/networks/onnx.py experiments/explanation_methods

coverage: $(STAMP) ## branch coverage of the independent checker, which must be 100 %
	$(TEST) -q tests/convattn_check --cov=convattn_check --cov-branch --cov-report=term-missing --cov-fail-under=100

mutants-of: $(STAMP) ## small errors put into a module that no test notices: make mutants-of FILE=src/convattn_check/rank.py (SAMPLE=1000: so many are drawn by SEED)
	$(BIN)/python scripts/reliability/mutation.py $(FILE) --seed $(SEED) $(addprefix --sample ,$(SAMPLE))

lint: $(STAMP) ## ruff: lint and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## mypy
	$(BIN)/mypy

doctest: $(STAMP) ## run every example in the docstrings and in the README
	$(COMPILE_QUICKLY) $(TEST) -q --doctest-modules --ignore=src/convattn/torch src $(filter-out experiments/benchmarks/ experiments/explanation_methods/,$(dir $(wildcard experiments/*/__init__.py))) --doctest-glob='*.md' README.md docs

certificates: $(STAMP) ## regenerate certificates/ (the bytes must not change)
	$(BIN)/python -m convattn_ledger.certificates --output certificates --stated src/convattn_ledger/certificates/stated.json

corpora: ## regenerate tests/incorrect/ and tests/correct/, for any checker of certificates
	PYTHONPATH=src:tests/convattn_check $(PYTHON) -m corpora

ledger: $(STAMP) ## regenerate what docs/ledger.md, errata.md, identities.md, proofs.md and trust.md show of the claims
	$(BIN)/convattn ledger --output docs/ledger.md
	$(BIN)/convattn ledger --errata --output docs/errata.md
	$(BIN)/convattn prove --table docs/proofs.md
	$(BIN)/python scripts/list_identities.py > docs/identities.md.part && mv docs/identities.md.part docs/identities.md
	$(BIN)/python scripts/site_statements.py docs/trust.md

data: $(STAMP) ## rebuild the bundled CIFAR-10 slice: make data SOURCE=PATH/cifar10-lossless.tar.xz
	$(BIN)/python scripts/make_cifar10_slice.py $(SOURCE)

lock: $(STAMP) ## resolve pyproject.toml anew into requirements.lock (needs uv)
	uv pip compile --universal --python-version 3.11 --extra cli --extra verify --extra test --extra lint --extra build \
	  --extra experiments --extra explore --extra docs --extra browser --generate-hashes --no-annotate \
	  --custom-compile-command "make lock" pyproject.toml -o requirements.lock

docs: $(STAMP) build/report/index.html ## build the site strictly, tutorials run, into build/site/
	$(COMPILE_QUICKLY) NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# In three runs the references and the widths of the table settle.
note: $(STAMP) ## build the paper, docs/note/note.tex, into build/note/note.pdf
	@command -v pdflatex >/dev/null || { echo "make note needs pdflatex: apt-get install --no-install-recommends $(TEXLIVE)" >&2; exit 1; }
	mkdir -p build/note
	$(BIN)/python scripts/note_table.py
	$(BIN)/python scripts/draw_note.py
	for run in 1 2 3; do \
	  TEXINPUTS=build/note: pdflatex -interaction=nonstopmode -halt-on-error -output-directory=build/note docs/note/note.tex >build/note/output.txt \
	    || { tail -n 20 build/note/output.txt >&2; exit 1; }; \
	done
	! grep -E 'undefined|multiply defined|Rerun to get' build/note/note.log

build: $(STAMP) ## build the wheel and the source distribution into dist/
	$(BIN)/python -m build --no-isolation

clean: ## remove .venv/ and everything generated
	rm -rf $(VENV) .venv-torch build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
