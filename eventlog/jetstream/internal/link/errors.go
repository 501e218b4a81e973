package link

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
)

// JetStream error codes that mean something here; all translation is in this
// file and goes by code.
const (
	codeWrongLastSequence         = 10071 // compare-and-swap failed
	codeWrongLastSequenceConstant = 10164 // another append is in flight; try again
	codeNoMessageFound            = 10037
	codeStreamNotFound            = 10059
	codeMessageTooLarge           = 10054
	codeAtomicTooLarge            = 10199
	codeAtomicIncomplete          = 10176 // part of a batch did not arrive
	codeAtomicTooMany             = 10210 // as many batches are open as the server takes
	codeNoSuitablePeers           = 10005 // too few servers are known to be there
	codeClusterNotAssigned        = 10007
	codeClusterNotAvailable       = 10008 // no leader
	codeClusterNotLeader          = 10009
	codeInsufficientResources     = 10023 // also: the servers have not said yet what they have
	codeStreamOffline             = 10118
)

// APIError is the error object of JetStream's answers.
type APIError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *APIError) Error() string {
	return fmt.Sprintf("jetstream: %s (%d)", e.Description, e.ErrCode)
}

// number returns the number that the description ends with, 0 if there is
// none. It is a hint only: what depends on it has to be checked.
func (e *APIError) number() uint64 {
	_, text, _ := strings.Cut(e.Description, ": ")
	n, _ := strconv.ParseUint(text, 10, 64)
	return n
}

// Refusals that pass: the server stored nothing, and takes the same in a moment.
var (
	// ErrInFlight: the server can't compare yet, since it is replicating another
	// append to the session.
	ErrInFlight = errors.New("jetstream: another append to the session is in flight")
	// ErrBatchRefused: the server took no batch, or not all of its messages.
	ErrBatchRefused = errors.New("jetstream: batch refused")
	// ErrBeingMade: another node's stream has its name already, and no leader.
	ErrBeingMade = errors.New("jetstream: the stream is being made")
)

// IsInFlight reports whether err is JetStream's refusal to compare yet.
func IsInFlight(err error) bool {
	e, ok := errors.AsType[*natsjs.APIError](err)
	return ok && e.ErrorCode == codeWrongLastSequenceConstant
}

// appendError says what a refused append means.
func appendError(e *APIError) error {
	switch e.ErrCode {
	case codeWrongLastSequence:
		return &eventlog.ConflictError{Head: e.number()}
	case codeWrongLastSequenceConstant:
		return ErrInFlight
	case codeAtomicIncomplete, codeAtomicTooMany:
		return fmt.Errorf("%w: %w", ErrBatchRefused, e)
	case codeMessageTooLarge, codeAtomicTooLarge:
		return fmt.Errorf("%w: %w", eventlog.ErrTooLarge, e)
	}
	if e.Code >= 500 || e.Code == 429 || e.Code == 408 {
		return fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, e)
	}
	return e
}

// IsConflict reports whether the server refused to publish since the subject's last
// message is another one than was expected, or may soon be.
func IsConflict(err error) bool {
	e, ok := errors.AsType[*natsjs.APIError](err)
	return ok && (e.ErrorCode == codeWrongLastSequence || e.ErrorCode == codeWrongLastSequenceConstant)
}

// IsUnsettled reports whether a cluster may answer otherwise in a moment.
func IsUnsettled(err error) bool {
	if errors.Is(err, ErrBeingMade) {
		return true
	}
	if e, ok := errors.AsType[*natsjs.APIError](err); ok {
		switch e.ErrorCode {
		case codeNoSuitablePeers, codeClusterNotAssigned, codeClusterNotAvailable, codeClusterNotLeader,
			codeInsufficientResources, codeStreamOffline:
			return true
		}
		return false
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) ||
		errors.Is(err, natsjs.ErrNoStreamResponse) || // nobody takes what is published yet, or between two leaders
		errors.Is(err, nats.ErrConnectionReconnecting) || errors.Is(err, nats.ErrDisconnected)
}

// transportError says what a lost or impossible request means for an append.
func transportError(err error) error {
	switch {
	case errors.Is(err, nats.ErrConnectionClosed): // perhaps while the answer was on its way
		return fmt.Errorf("%w: %w: %w", eventlog.ErrOutcomeUnknown, eventlog.ErrClosed, err)
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: %w", eventlog.ErrTooLarge, err)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrTimeout),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled),
		errors.Is(err, nats.ErrConnectionReconnecting), errors.Is(err, nats.ErrDisconnected):
		return fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
	}
	return err
}

// ErrNoMessage: the stream has no such message.
var ErrNoMessage = errors.New("jetstream: no message")

// ErrStaleLeader tells of a server that knows less than the caller was told.
var ErrStaleLeader = errors.New("jetstream: the stream's leader knows less than was acknowledged")

// ErrStopped tells that the consumer wants no more.
var ErrStopped = errors.New("jetstream: stopped")

// NewsTime is how long a leader that could not be reached may take, once it can,
// to learn that there is another one: what was on its way to it reaches it first,
// and makes it look as if it had heard from the majority.
const NewsTime = 250 * time.Millisecond

// LostAdvice is what can be done about a log of which a part is gone.
const LostAdvice = "nothing was created or deleted: repair the server's folder of the stream, or restore a backup into an empty deployment; " +
	"to give up what is left, remove all HELIX_ streams"
