package eventlog

// Erased fences a session that is being erased: it is a session's last record
// for as long as the others are removed, and then goes itself.
type Erased struct {
	FactBase
}

// Type returns "erased".
func (*Erased) Type() string { return "erased" }

// Erasure says how far the erasure of a session has come.
type Erasure struct {
	// Pending: some of its bytes may still be on a disk. The nodes continue without
	// further requests; erase again to see how far they are. If it is set beside an
	// error, the erasure has begun and is final: the session is not found any more.
	// If it is not set beside an error, the outcome is unknown.
	Pending bool `json:"pending"`
	// Records is how many records were removed by this call.
	Records int `json:"records"`
	// WaitsFor says what a pending erasure waits for. It needs no action.
	WaitsFor string `json:"waitsFor,omitempty"`
	// Left names what a pending erasure can't remove, and what an operator must do.
	Left string `json:"left,omitempty"`
}
