// Package deployment is what the load programs beside it share. It runs helixd nodes and
// NATS servers as processes, sends requests and reads streams through httpapi/client,
// samples memory and processor time, and starts and ends a program's run. All processes
// are on the loopback interface. Their data, files and logs are in one folder.
package deployment
