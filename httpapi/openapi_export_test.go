package httpapi

import "github.com/helixd/helixd/httpapi/api"

// ErrorRow is what some errors are answered with.
type ErrorRow struct {
	Status int
	Code   api.Code
}

// ErrorTable returns the error table, and what everything else is.
func ErrorTable() []ErrorRow {
	rows := []ErrorRow{{500, api.CodeInternalError}}
	for _, f := range failures {
		rows = append(rows, ErrorRow{f.status, f.code})
	}
	return rows
}
