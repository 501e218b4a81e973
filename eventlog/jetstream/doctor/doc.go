// Package doctor examines a deployment as a log on it would use it: connection, permissions, streams, their
// settings and limits. It stores nothing.
package doctor
