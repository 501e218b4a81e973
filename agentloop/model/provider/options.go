package provider

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// Options are members of a request's body that an adapter has no setting for, by
// their names in the provider's API. They replace what the adapter sends.
type Options map[string]any

// optionName is a member at the top of a request's body.
var optionName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// ownOptions are the members that are the call itself.
var ownOptions = []string{"model", "messages", "input", "instructions", "system", "tools", "functions", "stream", "stream_options", "n"}

// Check returns what is wrong with a name, if anything is.
func (o Options) Check() error {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		switch {
		case !optionName.MatchString(name):
			return fmt.Errorf("%q is not the name of a member of a request", name)
		case slices.Contains(ownOptions, name):
			return fmt.Errorf("%s is set by helixd", name)
		}
	}
	return nil
}
