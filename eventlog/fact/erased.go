package fact

// Erased fences a session that is being erased: it is a session's last record
// for as long as the others are removed, and then goes itself.
type Erased struct {
	Base
}

// Type returns "erased".
func (*Erased) Type() string { return "erased" }
