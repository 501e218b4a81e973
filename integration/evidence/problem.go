package evidence

import "fmt"

// Problem is a promise that a session does not hold.
type Problem struct {
	Sequences []uint64 // of what is there, or should be
	What      string
}

func (p *Problem) Error() string { return p.What }

// Wrong returns a Problem.
func Wrong(sequences []uint64, format string, args ...any) error {
	return &Problem{sequences, fmt.Sprintf(format, args...)}
}
