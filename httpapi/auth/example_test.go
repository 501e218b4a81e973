package auth_test

import (
	"fmt"
	"net/http"

	"github.com/helixd/helixd/httpapi/auth"
)

// A token may do some operations on the sessions of a team.
func ExampleBearerTokens() {
	authenticate := auth.BearerTokens([]auth.Token{
		{Token: "secret", Name: "web", Operations: []string{"start", "stream"}, Sessions: []string{"team/*"}},
	})
	request := &http.Request{Header: http.Header{"Authorization": {"Bearer secret"}}}

	fmt.Println(authenticate(request, auth.OpStream, "team/1"))
	fmt.Println(authenticate(request, auth.OpStream, "other"))
	fmt.Println(authenticate(request, auth.OpErase, "team/1"))
	// Output:
	// <nil>
	// httpapi: forbidden
	// httpapi: forbidden
}
