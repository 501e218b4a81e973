package control

import "time"

// Timeouts of the routes that append.
const (
	// chunksBodyTimeout is how long a client may take to send the body of POST
	// /sessions/{id}/chunks.
	chunksBodyTimeout = 2 * time.Minute
	// appendTimeout bounds the appends of outside producers.
	appendTimeout = 30 * time.Second
)
