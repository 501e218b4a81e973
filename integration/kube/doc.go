// Package kube tests the Helm chart and compose.yaml of cmd/helixd/packaging: Helm renders the
// chart, Kubernetes' own types decode the result strictly, and its settings, as those of
// compose.yaml, start three nodes as processes. It is a module of its own, so that
// helixd depends on neither Helm nor Kubernetes.
package kube
