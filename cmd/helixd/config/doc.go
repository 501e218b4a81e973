// Package config reads helixd's configuration: helix.yaml, the environment
// and, through [Config.SetFrom], the command line's flags.
//
// # What wins
//
// Flags beat the environment, the environment beats the file, the file beats
// [Default]. Every scalar outside of lists and maps has an environment
// variable (nats.url is HELIX_NATS_URL); a HELIX_ variable that no
// key has is not an error. An empty variable is set, and sets the empty
// string. A key that the file leaves empty (`tools:`) keeps its default.
// Durations are written as Go does (1h30m), amounts of bytes as [Bytes] are.
//
// # References
//
// A string of the file may be env:NAME, the value of an environment variable,
// or file:PATH, the content of a file without its last line end; PATH is
// relative to the configuration file's folder. A number, a boolean or a
// duration may be such a string too. References are resolved in the typed
// keys, systemPrompt included, and not inside of free JSON: inputSchema,
// outputSchema, initialState, requireApproval and a script's arguments. There
// is no escape: a typed string that begins with env: or file: is a reference.
// Values of the environment and of flags are never references. A reference in
// a list within {} needs quotes, as go-yaml would take its colon for a key's;
// Load says so.
//
// # Errors
//
// [Load] returns every problem it finds, one a line, as
//
//	helix.yaml:12: agents.researcher.maxSteps: must be at least 1
//
// and names the variable instead of file and line where the environment is to
// blame. Unknown and duplicate keys, wrong types and YAML tags are errors.
// Errors never show a value, since any value may be a secret in the wrong
// place.
//
// # What it does not check
//
// Nothing is contacted or bound: hosts may be unreachable. Of the files that
// keys name, only auth.jwt.jwksFile is read. Whether the daemon may run
// without authentication is the caller's decision, since flags come after
// Load.
package config
