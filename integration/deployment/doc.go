// Package deployment runs helixd nodes and NATS servers as processes, for the
// programs beside it that measure what happens when one of them dies. All of
// them are on the loopback interface, and their data, their files and their logs
// are in one folder.
package deployment
