package httpapi

// ErrorRow is what some errors are answered with.
type ErrorRow struct {
	Status int
	Code   Code
}

// ErrorTable returns the error table, and what everything else is.
func ErrorTable() []ErrorRow {
	rows := []ErrorRow{{500, CodeInternalError}}
	for _, f := range failures {
		rows = append(rows, ErrorRow{f.status, f.code})
	}
	return rows
}
