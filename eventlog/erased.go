package eventlog

// Erased fences a session that is being erased: it is a session's last record
// for as long as the others are removed, and then goes itself.
type Erased struct {
	FactBase
}

// Type returns "erased".
func (*Erased) Type() string { return "erased" }

// Erasure tells how far the erasure of a session has come.
type Erasure struct {
	// Pending: some of its bytes may still lie on a disk; erase again to
	// learn more, the nodes go on by themselves. With an error: the erasure has begun, for good, and the
	// session is not found any more. Without it nobody knows.
	Pending bool `json:"pending"`
	// Records is how many records were removed by this call.
	Records int `json:"records"`
	// WaitsFor says what it waits for while it is pending, and goes by itself.
	WaitsFor string `json:"waitsFor,omitempty"`
	// Left names what stays while it is pending, and what an operator must do.
	Left string `json:"left,omitempty"`
}
