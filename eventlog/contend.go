package eventlog

import (
	"context"
	"errors"
)

// Contend has try append to a session to which others append, too, and calls it
// again for as long as it returns a *ConflictError. try reads what is new, decides
// what to append, and appends that with the context that it is given.
//
// From the second call on all others wait, on whatever node they are, but for
// others that contend (see [Log].Hold): a writer that always has an append in
// flight would win for ever.
func Contend(ctx context.Context, log Log, session string, try func(context.Context) error) error {
	release := func() {}
	defer func() { release() }()
	for err := try(ctx); ; {
		if _, conflict := errors.AsType[*ConflictError](err); !conflict {
			return err
		}
		held, next := log.Hold(ctx, session)
		release() // not before: nobody slips in between
		release = next
		err = try(held)
	}
}
