// Package doctor examines a deployment as a log on it would use it: connection,
// permissions, streams, their settings and limits. Each finding has a stable id, and says
// what to change. It stores nothing and changes no setting.
package doctor
