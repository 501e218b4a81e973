package embed

import (
	"errors"
	"fmt"
	"strings"

	"github.com/helixd/helixd/embed/internal/blocks"
	"github.com/nats-io/nats-server/v2/server"
)

// The accounts and the users that the server itself makes. Names with a
// space cannot be mistaken for one that an operator chose.
const (
	accountOutside = "OUTSIDE"
	userInside     = "helixd inside"
	userSystem     = "helixd system"
	userOutside    = "helixd outside"
)

// liveSubjects are the subjects to which outside clients may subscribe.
const liveSubjects = "helix.live.>"

// readAPI is the part of JetStream's API that only reads, and whether a
// request has several answers.
var readAPI = []struct {
	subject string
	stream  bool
}{
	{"$JS.API.INFO", false},
	{"$JS.API.STREAM.INFO.*", false},
	{"$JS.API.STREAM.NAMES", false},
	{"$JS.API.STREAM.MSG.GET.*", false},
	{"$JS.API.DIRECT.GET.>", true}, // a batch is many messages
}

// authorize fills in the permissions. Clients from outside are in a separate account and
// have permissions in addition, for two reasons:
//
//   - Subscribe permissions do not limit what a JetStream consumer reads: its
//     messages go to any inbox that its creator names. So outside clients may
//     not create one.
//   - Publish permissions do not limit a request's reply subject: the server
//     itself publishes the answer there. In one common account a reader could
//     have a direct get answered to helix.log.0.x, and thereby write to the
//     log. Across accounts the answer stays in the account of the client that asked.
//
// Nor can an outside client subscribe to the inboxes of inside clients. With a User,
// clients without credentials are not let in at all.
func authorize(opts *server.Options, o Options) error {
	if (o.User == "") != (o.Password == "") {
		return errors.New("embed: User and Password go together")
	}
	if o.User == userInside || o.User == userOutside || o.User == userSystem {
		return fmt.Errorf("embed: the user name %q is taken", o.User)
	}
	// Only the parser can give an account JetStream.
	if err := opts.ProcessConfigString(accountsConfig(o.AllowRead, len(o.Subscribers) > 0, o.Cluster != nil)); err != nil {
		return fmt.Errorf("embed: accounts: %w", err)
	}
	accounts := map[string]*server.Account{}
	for _, a := range opts.Accounts {
		accounts[a.Name] = a
	}
	outside := &server.Permissions{
		Publish:   &server.SubjectPermission{Deny: []string{">"}},
		Subscribe: &server.SubjectPermission{Allow: []string{liveSubjects, "_INBOX.>"}},
	}
	if o.AllowRead {
		outside.Publish = &server.SubjectPermission{}
		for _, api := range readAPI {
			outside.Publish.Allow = append(outside.Publish.Allow, api.subject)
		}
	}
	opts.Users = []*server.User{
		{Username: userInside, Password: o.password, Account: accounts[blocks.Account]},
	}
	if o.Cluster != nil { // to change its members
		opts.Users = append(opts.Users, &server.User{
			Username: userSystem, Password: o.password, Account: accounts[server.DEFAULT_SYSTEM_ACCOUNT],
		})
	}
	if o.User != "" {
		// Nor is there userOutside, whose password is empty.
		opts.Users = append(opts.Users, &server.User{
			Username: o.User, Password: o.Password, Account: accounts[blocks.Account],
		})
		return nil
	}
	opts.Users = append(opts.Users, &server.User{
		Username: userOutside, Account: accounts[accountOutside], Permissions: outside,
	})
	opts.NoAuthUser = userOutside
	return nil
}

func accountsConfig(allowRead, subscribers, cluster bool) string {
	exports := fmt.Sprintf("{stream: %q}\n", liveSubjects)
	imports := fmt.Sprintf("{stream: {account: %s, subject: %q}}\n", blocks.Account, liveSubjects)
	if allowRead {
		var ex, im strings.Builder
		for _, api := range readAPI {
			answers := "singleton"
			if api.stream {
				answers = "stream"
			}
			fmt.Fprintf(&ex, "{service: %q, response_type: %s, accounts: [%s]}\n", api.subject, answers, accountOutside)
			fmt.Fprintf(&im, "{service: {account: %s, subject: %q}}\n", blocks.Account, api.subject)
		}
		exports, imports = exports+ex.String(), imports+im.String()
	}
	var others string
	if subscribers {
		others = fmt.Sprintf("%s {imports: [{stream: {account: %s, subject: %q}}]}\n", accountSubscribers, blocks.Account, liveSubjects)
	}
	if cluster {
		others += server.DEFAULT_SYSTEM_ACCOUNT + " {}\n"
	}
	return fmt.Sprintf("accounts {\n%s {jetstream: enabled, exports: [\n%s]}\n%s {imports: [\n%s]}\n%s}\n",
		blocks.Account, exports, accountOutside, imports, others)
}
