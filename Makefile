# Everything a person or CI does with this project. `make` alone explains it.

# --- what may be set: make deploy IMG=registry.example.com/operator:v1 --------

# The operator's image; a digest (name@sha256:...) does as well as a tag.
IMG ?= controller:latest
# docker, podman or buildah: the first that is there and answers.
CONTAINER_TOOL ?= $(or $(shell for tool in docker podman buildah; do \
	$$tool info >/dev/null 2>&1 && echo $$tool && break; done),docker)
# Images to build with and upon; empty means the defaults of the Dockerfile.
BUILDER_IMAGE ?=
BASE_IMAGE ?=
SHELL_IMAGE ?=
# More flags for the image build, such as --platform or --no-cache.
BUILD_FLAGS ?=

KUBECTL ?= kubectl
# true: it is no error if what is to be deleted is not there.
ignore-not-found ?= false
# How long uninstall and undeploy wait for resources to be cleaned up.
delete-timeout ?= 2m

CARGO ?= cargo
# Which tests: make test TESTARGS='-p catamaran-chart coalesce'
TESTARGS ?= --workspace --no-fail-fast
# How long, in seconds, and what to fuzz; empty means every target.
FUZZ_TIME ?= 60
TARGET ?=
# How many generated cases `make conformance` compares with the real Helm, what
# they follow from (empty: another seed each time), and folders of charts of
# your own to compare as well.
CASES ?= 20000
SEED ?=
CHARTS ?=
# How many resources `make bench-scale` makes, and more flags of it.
N ?= 1000
SCALE ?=
# The packages under examples/ that are operators.
EXAMPLES = machines alnair-pod homelab database
# Simulated nodes of `make demo` and `make dev`.
NODES ?= 2
# real: `make demo` deploys to a real node instead; needs root.
NODE ?= simulated

# --- how the recipes run -------------------------------------------------------

# A failure anywhere in a pipeline fails the recipe.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
# In the order typed: `make -j docker-build docker-push deploy` must not deploy
# first. cargo itself uses all cores.
.NOTPARALLEL:
.DEFAULT_GOAL := help

DEBUG_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target))/debug
RELEASE_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target))/release
CONFORMANCE := $(DEBUG_DIR)/conformance
# A cluster that lives as long as the command behind the dashes.
LOCALCLUSTER := $(DEBUG_DIR)/localcluster run --nodes $(NODES) --
# The same with a real node, and the images for it.
IMAGES := $(abspath $(or $(CARGO_TARGET_DIR),target))/images
REALCLUSTER := $(DEBUG_DIR)/localcluster run --real-node \
	$(addprefix --image $(IMAGES)/,operator.tar memcached.tar) --
SCRIPTS = .ci/run $(wildcard hack/*.sh hack/*/*.sh crates/*/tests/*.sh crates/*/tests/*/*.sh)

# Puts the pinned tools first on the PATH of the rest of the recipe. In two
# steps, because a failure inside eval's argument would go unnoticed.
WITH_TOOLS = tools=$$(hack/tools.sh env) && eval "$$tools"
WITH_NODE_TOOLS = tools=$$(hack/tools.sh --node env) && eval "$$tools"

##@ General

.PHONY: help
help: ## Show this text.
	@awk 'BEGIN { FS = ":.*##"; print "\nUsage:\n  make \033[36m<target>\033[0m" } \
		/^[a-zA-Z0-9_-]+:.*##/ { printf "  \033[36m%-14s\033[0m %s\n", $$1, $$2 } \
		/^##@/ { printf "\n\033[1m%s\033[0m\n", substr($$0, 5) }' $(firstword $(MAKEFILE_LIST)) \
		| if [ -t 1 ]; then cat; else sed 's/\x1b\[[0-9;]*m//g'; fi

.PHONY: demo
demo: localcluster ## See it work: a cluster of its own, both samples, a scale, the deletion. NODE=real: deployed.
	$(CARGO) build --bin memcached-operator
	@if [ '$(NODE)' = real ]; then \
		hack/node.sh check && $(WITH_NODE_TOOLS) && hack/with-images.sh $(IMAGES) $(REALCLUSTER) hack/demo.sh; \
	else \
		$(WITH_TOOLS) && OPERATOR=$(DEBUG_DIR)/memcached-operator $(LOCALCLUSTER) hack/demo.sh; \
	fi

.PHONY: dev
dev: localcluster ## Leave a cluster up, CRDs installed, for your own kubectl. Ctrl-C ends it.
	@$(WITH_TOOLS) && $(LOCALCLUSTER) hack/dev.sh

.PHONY: localcluster
localcluster:
	$(CARGO) build --package catamaran-localcluster --bins

.PHONY: clean
clean: ## Delete what was built. The pinned tools stay in their cache.
	$(CARGO) clean

##@ Development

.PHONY: tools
tools: ## Find or build the pinned control plane, kubectl, kwok, helm 4 and helm 3.
	@hack/tools.sh

.PHONY: build
build: manifests ## Build the operator.
	$(CARGO) build --release --bin memcached-operator

.PHONY: run
run: ## Run the operator here, against the cluster of $KUBECONFIG.
	$(CARGO) run --bin memcached-operator -- --watches-file watches.yaml

.PHONY: manifests
manifests: ## Write the CRDs of the native kinds, from the Rust types, into config/crd/bases.
	$(CARGO) run --bin crdgen -- config/crd/bases

.PHONY: manifests-examples
manifests-examples: ## The same for the examples, into their config/crd.
	WRITE_MANIFESTS=1 $(CARGO) test --lib $(addprefix --package ,$(EXAMPLES)) the_crds_are_up_to_date

.PHONY: generate
generate: manifests ## The same: Rust's derives stand in for generated deep copies.
	@echo "generate: nothing else to do, the code a type needs is derived when it is compiled"

.PHONY: docs
docs: ## Write the reference page of the functions, from the functions, into docs/functions.md.
	WRITE_DOCS=1 $(CARGO) test --package catamaran-chart --test functions the_reference_page_is_up_to_date

.PHONY: fmt
fmt: ## Format all Rust code.
	$(CARGO) fmt --all

.PHONY: lint
lint: lint-fmt lint-clippy lint-fuzz lint-crds lint-scripts lint-images deny ## Check formatting, code, CRDs, scripts and dependencies.

.PHONY: lint-fmt
lint-fmt:
	$(CARGO) fmt --all --check

.PHONY: lint-clippy
lint-clippy:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

# Fuzz targets are no part of the workspace, and would go stale unseen.
.PHONY: lint-fuzz
lint-fuzz:
	$(CARGO) fmt --all --check --manifest-path fuzz/Cargo.toml
	$(CARGO) check --workspace --locked --manifest-path fuzz/Cargo.toml --target-dir $(DEBUG_DIR)/../fuzz-check

.PHONY: lint-crds
lint-crds:
	hack/check-crds.sh

.PHONY: lint-scripts
lint-scripts:
	@if command -v shellcheck >/dev/null; then \
		echo "shellcheck $(SCRIPTS)"; shellcheck $(SCRIPTS); \
	else echo "lint: SKIPPED shellcheck, which is not installed"; fi

.PHONY: lint-images
lint-images:
	hack/pin-images.sh check

.PHONY: deny
deny: ## Check licences, bans and sources of all dependencies; builds the pinned cargo-deny where it is missing.
	hack/deny.sh

# make advisories ADVISORY_DB=https://mirror.example/advisory-db
.PHONY: advisories
advisories: ## Check dependencies for known vulnerabilities. Needs the database: by git, or of a mirror (ADVISORY_DB).
	ADVISORY_DB='$(ADVISORY_DB)' hack/deny.sh advisories

.PHONY: test
test: ## Run all tests, on a real control plane of their own.
	@hack/node.sh install server || echo "note: servers of Debian's packages could not be installed"
	$(CARGO) build --workspace --bins
	@$(WITH_TOOLS) && export CATAMARAN_LOCALCLUSTER=$(DEBUG_DIR)/localcluster && set -x && $(CARGO) test $(TESTARGS)

.PHONY: test-examples
test-examples: ## Run the tests of the examples alone: `make test` has them, too.
	@hack/node.sh install server || echo "note: servers of Debian's packages could not be installed"
	$(CARGO) build --package catamaran-localcluster --bins
	@$(WITH_TOOLS) && export CATAMARAN_LOCALCLUSTER=$(DEBUG_DIR)/localcluster && set -x && \
		$(CARGO) test --no-fail-fast $(addprefix --package ,$(EXAMPLES))

# make bench CHARTS=/a/folder DETAIL='--detail airflow': a folder of other people's charts, all or some
.PHONY: bench
bench: ## Measure against the real helm, as docs/performance.md tells. CHARTS=folder: with charts of your own.
	$(CARGO) build --release --package catamaran-benches
	$(CARGO) ship
	@$(WITH_TOOLS) && cd hack/tools/helm4 && go build -o $(RELEASE_DIR)/helm-render ./render
	@$(WITH_TOOLS) && $(RELEASE_DIR)/catamaran-benches --helm "$$(command -v helm)" \
		--catamaran $(RELEASE_DIR)/catamaran --library $(RELEASE_DIR)/helm-render \
		$(if $(CHARTS),--charts $(CHARTS)) $(DETAIL)

# make bench-scale N=10000 SCALE='--mixed 0 --definitions 0'
.PHONY: bench-scale
bench-scale: ## Measure the operator with N=1000 resources against what the API server can take.
	$(CARGO) build --release --package catamaran-benches --package catamaran-localcluster
	$(CARGO) ship
	@$(WITH_TOOLS) && CATAMARAN_LOCALCLUSTER=$(RELEASE_DIR)/localcluster $(RELEASE_DIR)/catamaran-scale \
		--helm "$$(command -v helm)" --operator $(RELEASE_DIR)/catamaran --count $(N) $(SCALE)

# make bench-growth GROWTH='--only template --doublings 6'
.PHONY: bench-growth
bench-growth: ## Measure how the time of work over a tenant's data grows with that data.
	$(CARGO) run --release --package catamaran-benches --bin catamaran-growth -- $(GROWTH)

.PHONY: fuzz
fuzz: ## Fuzz what reads strangers' bytes, FUZZ_TIME=60 seconds each; TARGET=one of them. Needs cargo-fuzz and nightly.
	FUZZ_TIME=$(FUZZ_TIME) hack/fuzz.sh $(TARGET)

.PHONY: conformance
conformance: ## Compare with the real Helm: fixtures, generated cases, charts. CASES=20000 SEED=7 CHARTS='dir ...'
	$(CARGO) build --package catamaran-cli --package catamaran-conformance
	@tools=$$(hack/tools.sh --oracle env) && eval "$$tools" && export CATAMARAN_TOOLS && \
		seed=$(or $(SEED),$$RANDOM) && status=0 && set -x && \
		$(CONFORMANCE) fixtures || status=1; \
		$(CONFORMANCE) found || status=1; \
		$(CONFORMANCE) generate --cases $(CASES) --seed $$seed --report $(CONFORMANCE).json || status=1; \
		$(if $(CHARTS),$(CONFORMANCE) charts $(CHARTS) || status=1;) \
		exit $$status

.PHONY: e2e
e2e: ## Deploy for real: image, node, containers. Needs root and Debian's packages (hack/node.sh install).
	@if missing=$$(hack/node.sh check); then \
		$(WITH_NODE_TOOLS) && $(CARGO) build --package catamaran-localcluster --bins && \
			WITH_POSTGRES=yes hack/with-images.sh $(IMAGES) bash -euc 'set -x; \
				$(CARGO) test --test e2e -- --ignored --nocapture; \
				$(CARGO) test --package database --test containers -- --ignored --nocapture'; \
	else echo "e2e: SKIPPED, $$missing"; fi

##@ Image

# Where the images that the Dockerfile names cannot be had: make docker-build
# BASE_IMAGE=localhost/catamaran-base BUILDER_IMAGE=localhost/catamaran-builder
.PHONY: base-image
base-image: ## Make localhost/catamaran-base from Debian's packages, without any registry.
	CONTAINER_TOOL=$(CONTAINER_TOOL) hack/images.sh base localhost/catamaran-base

.PHONY: builder-image
builder-image: ## Make localhost/catamaran-builder of this machine's Rust and Debian's packages.
	CONTAINER_TOOL=$(CONTAINER_TOOL) hack/images.sh builder localhost/catamaran-builder

.PHONY: shell-image
shell-image: ## Make localhost/catamaran-shell, with a shell and apt, of Debian's packages.
	CONTAINER_TOOL=$(CONTAINER_TOOL) hack/images.sh shell localhost/catamaran-shell

.PHONY: pin-images
pin-images: ## Write the digests that the tags of base images have now into the Dockerfiles. Needs skopeo.
	hack/pin-images.sh

.PHONY: sbom
sbom: ## Write what the binaries are made of (CycloneDX) into sbom/; builds the pinned cargo-cyclonedx where it is missing.
	hack/sbom.sh

.PHONY: docker-build
docker-build: sbom ## Build the image IMG, with docker, podman or buildah (CONTAINER_TOOL).
	$(CONTAINER_TOOL) build --tag $(IMG) \
		$(if $(BUILDER_IMAGE),--build-arg BUILDER_IMAGE=$(BUILDER_IMAGE)) \
		$(if $(BASE_IMAGE),--build-arg BASE_IMAGE=$(BASE_IMAGE)) \
		$(BUILD_FLAGS) .

# For projects of operator-sdk's Helm operator: FROM this image instead of theirs.
# HELM_OPERATOR_STAGE=shell: with a shell and a package manager.
HELM_OPERATOR_IMG ?= localhost/helm-operator:latest
HELM_OPERATOR_STAGE ?= helm-operator
.PHONY: helm-operator-image
helm-operator-image: sbom ## Build HELM_OPERATOR_IMG, upon which Dockerfiles of operator-sdk's Helm projects build.
	$(CONTAINER_TOOL) build --tag $(HELM_OPERATOR_IMG) --target $(HELM_OPERATOR_STAGE) \
		--file hack/helm-operator/Dockerfile \
		$(if $(BUILDER_IMAGE),--build-arg BUILDER_IMAGE=$(BUILDER_IMAGE)) \
		$(if $(BASE_IMAGE),--build-arg BASE_IMAGE=$(BASE_IMAGE)) \
		$(if $(SHELL_IMAGE),--build-arg SHELL_IMAGE=$(SHELL_IMAGE)) \
		$(BUILD_FLAGS) .

.PHONY: docker-push
docker-push: ## Push the image IMG.
	$(CONTAINER_TOOL) push $(IMG)

##@ Deployment

.PHONY: install
install: manifests ## Install the CRDs into the cluster of $KUBECONFIG.
	$(KUBECTL) apply -k config/crd

.PHONY: uninstall
uninstall: ## Delete the CRDs, and with them all resources of these kinds.
	@$(delete_crds)

# What is deployed: config/default, or config/namespaced for one namespace alone.
CONFIG ?= config/default

.PHONY: deploy
deploy: manifests ## Deploy CRDs, RBAC and the operator with image IMG. CONFIG=config/namespaced: with a Role.
	$(KUBECTL) kustomize $(CONFIG) | sed 's|: controller:latest$$|: $(IMG)|' | $(KUBECTL) apply -f -

# The kinds go first, while the operator is there to clean up after them. What
# is left then lacks the CRDs, hence the second --ignore-not-found.
.PHONY: undeploy
undeploy: ## Delete everything that deploy made, and all resources of these kinds.
	@$(delete_crds)
	$(KUBECTL) delete --ignore-not-found=true --timeout=$(delete-timeout) -k $(CONFIG)

# Deleting a CRD deletes its resources, and waits until the operator has done
# what their finalizers ask for: without an operator that would be for ever.
define delete_crds
	set -x; \
	$(KUBECTL) delete --ignore-not-found=$(ignore-not-found) --timeout=$(delete-timeout) -k config/crd || { \
		{ set +x; } 2>/dev/null; \
		echo "If resources are left whose finalizers nobody serves: start the operator (make run) and try again with ignore-not-found=true." >&2; \
		exit 1; \
	}
endef
