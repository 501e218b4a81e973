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

// JetStream error codes that matter here. This file maps all of them, by code.
const (
	codeWrongLastSequence         = 10071 // compare-and-swap failed
	codeWrongLastSequenceConstant = 10164 // another append is in flight; try again
	codeNoMessageFound            = 10037
	codeStreamNotFound            = 10059
	codeMessageTooLarge           = 10054
	codeAtomicTooLarge            = 10199
	codeAtomicIncomplete          = 10176 // part of a batch did not arrive
	codeAtomicTooMany             = 10210 // the server's limit of open batches is reached
	codeNoSuitablePeers           = 10005 // too few servers are known to be up
	codeClusterNotAssigned        = 10007
	codeClusterNotAvailable       = 10008 // no leader
	codeClusterNotLeader          = 10009
	codeInsufficientResources     = 10023 // also: the servers have not reported their resources yet
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

// number returns the number at the end of the description, 0 if there is none. It is a
// hint only: the caller must check it.
func (e *APIError) number() uint64 {
	_, text, _ := strings.Cut(e.Description, ": ")
	n, _ := strconv.ParseUint(text, 10, 64)
	return n
}

// Temporary refusals: the server stored nothing, and the same request can succeed a
// moment later.
var (
	// ErrInFlight: the server can't compare yet, since it is replicating another
	// append to the session.
	ErrInFlight = errors.New("jetstream: another append to the session is in flight")
	// ErrBatchRefused: the server took no batch, or not all of its messages.
	ErrBatchRefused = errors.New("jetstream: batch refused")
	// ErrBeingMade: another node is creating a stream with this name, and it has no
	// leader yet.
	ErrBeingMade = errors.New("jetstream: the stream is being made")
)

// IsInFlight reports whether err is JetStream's refusal to compare yet.
func IsInFlight(err error) bool {
	e, ok := errors.AsType[*natsjs.APIError](err)
	return ok && e.ErrorCode == codeWrongLastSequenceConstant
}

// appendError maps a refused append to its error.
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

// IsConflict implements [jetstream.IsConflict].
func IsConflict(err error) bool {
	e, ok := errors.AsType[*natsjs.APIError](err)
	return ok && (e.ErrorCode == codeWrongLastSequence || e.ErrorCode == codeWrongLastSequenceConstant)
}

// IsUnsettled reports whether a cluster may answer differently a moment later.
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
		errors.Is(err, natsjs.ErrNoStreamResponse) || // no server accepts publishes yet, or there is no leader
		errors.Is(err, nats.ErrConnectionReconnecting) || errors.Is(err, nats.ErrDisconnected)
}

// transportError maps a lost or impossible request of an append to its error.
func transportError(err error) error {
	switch {
	case errors.Is(err, nats.ErrConnectionClosed): // the answer may have been under way
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

// ErrStaleLeader: the server knows less than the caller.
var ErrStaleLeader = errors.New("jetstream: the stream's leader knows less than was acknowledged")

// ErrStopped: the consumer of a read wants no more.
var ErrStopped = errors.New("jetstream: stopped")

// NewsTime is how long a leader that was cut off may take, once it can be reached again,
// to notice that there is another one. Messages that were on their way to it arrive
// first, and make it look as if it had heard from the majority.
const NewsTime = 250 * time.Millisecond

// LostAdvice is the advice for a log of which a part is missing.
const LostAdvice = "nothing was created or deleted: repair the server's folder of the stream, or restore a backup into an empty deployment; " +
	"to give up what is left, remove all HELIX_ streams"
