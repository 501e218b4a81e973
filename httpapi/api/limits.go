package api

import "time"

// Limits of requests, in bytes unless they say otherwise.
const (
	// MaxBody is the largest body of a request.
	MaxBody = 4 << 20
	// MaxMembers is how many members a body may have. Objects inside it have no such
	// limit.
	MaxMembers = 1000
	// MaxSubmitBody is the largest body of POST /submit-tool-result.
	MaxSubmitBody = 1<<20 + 64<<10
	// MaxChunksBody is the largest body of POST /sessions/{id}/chunks.
	MaxChunksBody = 64 << 20
	// MaxImportLine is the longest line of POST /sessions/{id}/import: a record of the
	// largest payload fits.
	MaxImportLine = 64 << 20
	// MaxRecordTypes is how many types GET /sessions/{id}/records can be asked for at
	// once.
	MaxRecordTypes = 100

	// MaxCallerBodies limits the bodies that one caller sends at a time. A caller is a
	// tenant; without one, a token, a subject or a user. Bodies count as they arrive. The same
	// limit holds for answers over 64 KiB.
	MaxCallerBodies = 128 << 20
	// MaxBodies is the same for all callers together.
	MaxBodies = 512 << 20

	// DefaultPage and MaxPage are the default and the largest number of items of a page.
	DefaultPage = 50
	MaxPage     = 200
)

// Bounds of times: those that a request can ask for, and those that a client has.
const (
	// MinReplaySpeed and MaxReplaySpeed bound the speed of a replay; 1 is the recorded
	// pace. Speed 0 has no pauses.
	MinReplaySpeed = 0.01
	MaxReplaySpeed = 1000
	// DefaultReplayPause is the default of a replay's longest pause.
	DefaultReplayPause = 2 * time.Second
	// MaxReplayPause is the longest pause that a request can ask for.
	MaxReplayPause = 10 * time.Minute

	// MinSubscription and MaxSubscription bound how long a [Subscription] lasts.
	MinSubscription = time.Second
	MaxSubscription = 24 * time.Hour

	// TicketTTL is how long a [Ticket] can be used to open a stream.
	TicketTTL = 60 * time.Second

	// WriteTimeout is how long a client may take to read 64 KiB of an answer. It also has
	// to read 64 KiB a second on average, over an answer or an element of a stream.
	WriteTimeout = 30 * time.Second
)
