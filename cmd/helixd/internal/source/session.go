package source

import (
	"fmt"
	"reflect"

	"github.com/alecthomas/kong"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
)

// Sessions reads the values of type "session": ids, for commands that take a session as it
// is now.
var Sessions = kong.NamedMapper("session", kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
	if target.Kind() != reflect.Slice {
		id, err := popSession(ctx)
		target.SetString(id)
		return err
	}
	for ctx.Scan.Peek().IsValue() {
		id, err := popSession(ctx)
		if err != nil {
			return err
		}
		target.Set(reflect.Append(target, reflect.ValueOf(id)))
	}
	return nil
}))

func popSession(ctx *kong.DecodeContext) (id string, err error) {
	if err := ctx.Scan.PopValueInto("session", &id); err != nil {
		return "", err
	}
	return ParseSession(id)
}

// ParseSession reads a session's id where a command takes no point of the session.
// SESSION@N and SESSION@A..B are misuse; an id that itself ends like this needs one more @
// after it, as for [ParsePoint].
func ParseSession(text string) (id string, err error) {
	id, _, _, err = Between(text)
	if err == nil && id == text {
		var p Point
		if p, err = ParsePoint(text); p.At == nil {
			return p.Session, err
		}
		id = p.Session
	}
	if err == nil {
		err = flags.Misused(fmt.Errorf("%s is a point of a session; give its id alone: %s (or %[1]s@, if that is the id)", text, id))
	}
	return "", err
}

// Argument is a session's id as commands read it, quoted for a shell.
func Argument(session string) string {
	if atSequences.MatchString(session) || IsPoint(session) {
		session += "@"
	}
	return terminal.Word(session)
}
