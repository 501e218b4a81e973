package version

import (
	"cmp"
	"fmt"
)

// Format is the number of the format in which this program stores data: in the streams of
// a log and those beside it, and in the files of an embedded server. A log has it in the
// metadata of its streams, an embedded server's folder in the file "format", and a backup
// in its header. Everything that opens one of them refuses a later number before it writes
// anything, see [Check], and continues an earlier one.
//
// Raise it only if a program that knows the number before would misread the new data, lose
// part of it or take it for damage. Do not raise it for what such a program keeps and
// ignores (kinds and types of records, fields, headers), nor for data that is made again if
// it has another version (read models, packed folds). A program that raises it notes the
// new number before it stores anything in the new format, so that a crash between the two
// can't mislead an older program. Nodes with the number before can't run beside it: its
// changelog must say so, and that there is no way back but a backup.
//
//	1  before 0.1.0: a header for each field of a record, segments row by row
//	2  since 0.1.0: one header, segments in columns
const Format = 2

// NewerError says that data has a later format than this program knows.
type NewerError struct {
	Of     string // "the log", for instance
	Format int    // its number
	Reads  int    // the last one that this program knows of such data; 0: Format of this package
	Helixd string // the version that has written it; empty: not known
}

func (e *NewerError) Error() string {
	by, advice := e.Helixd, "use helixd "+e.Helixd+" or later"
	if by == "" || by == unknown {
		by, advice = "of a later version", "use that version"
	}
	return fmt.Sprintf("%s has format %d, written by helixd %s; this is helixd %s, which reads formats up to %d: %s",
		e.Of, e.Format, by, Current(), cmp.Or(e.Reads, Format), advice)
}

// Check returns a *NewerError if data has a later format than this program knows. helixd
// is the version that has written it.
func Check(of string, format int, helixd string) error {
	if format <= Format {
		return nil
	}
	return &NewerError{Of: of, Format: format, Helixd: helixd}
}
