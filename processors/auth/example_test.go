package auth_test

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/turntable-streams/turntable/processors/auth"
)

// Each user has a token and may use the sessions whose IDs begin with the user's name.
func ExampleAuthenticate() {
	tokens := map[string]string{"mira": "s3cret"}
	var authenticate auth.Authenticate = func(r *http.Request) (auth.Caller, error) {
		user, token, _ := r.BasicAuth()
		want, known := tokens[user]
		if !known || subtle.ConstantTimeCompare([]byte(token), []byte(want)) == 0 {
			return auth.Caller{}, errors.New("unknown user or wrong token")
		}
		return auth.Caller{
			UserID: user,
			MayUse: func(session string) bool { return strings.HasPrefix(session, user+"-") },
		}, nil
	}

	r := httptest.NewRequest(http.MethodPost, "/api/chat", nil)
	r.SetBasicAuth("mira", "s3cret")
	caller, err := authenticate(r)
	fmt.Println(caller.UserID, err)
	fmt.Println(caller.Allowed("mira-1"), caller.Allowed("otto-1"))

	r.SetBasicAuth("mira", "guess")
	_, err = authenticate(r)
	fmt.Println(err)
	// Output:
	// mira <nil>
	// true false
	// unknown user or wrong token
}
