# The library with Coq, Chromium and all that .ci/run needs, from the lock; tests/test_dockerfile.py compares them.
#   docker build --tag convattn .               make prove is done, so that `make verify` counts PROVED
#   docker run --rm convattn                    make verify
#   docker build --target checked .             all that continuous integration runs
FROM python:3.11-bookworm AS installed
RUN apt-get update --quiet \
 && DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends \
      coq libcoq-mathcomp-algebra libcoq-mathcomp-algebra-tactics libcoq-mathcomp-zify libcoq-interval ocaml-nox ocaml-findlib libzarith-ocaml-dev texlive-latex-base texlive-latex-recommended chromium \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /convattn
COPY . .
RUN make install

FROM installed AS checked
RUN .ci/run

FROM installed AS convattn
RUN make prove
CMD ["make", "verify"]
