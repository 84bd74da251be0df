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

// The sessions of a user begin with the user's name and a colon.
func ExampleParseSessions() {
	sessions, err := auth.ParseSessions("{user}:*", "lobby")
	fmt.Println(err)
	may := sessions.For("mira")
	fmt.Println(may("mira:1"), may("otto:1"), may("lobby"))
	// Output:
	// <nil>
	// true false true
}

func ExampleParseRights() {
	rights, err := auth.ParseRights("read", "write")
	fmt.Println(rights, err)
	fmt.Println(auth.Caller{Rights: rights}.Can(auth.Control))
	// Output:
	// read,write <nil>
	// false
}

// A door accepts bearer tokens, and client certificates for requests without one.
func ExampleFirst() {
	tokens := func(r *http.Request) (auth.Caller, error) {
		token, err := auth.Bearer(r)
		switch {
		case err != nil:
			return auth.Caller{}, err
		case token != "s3cret":
			return auth.Caller{}, auth.ErrRejected
		}
		return auth.Caller{UserID: "mira"}, nil
	}
	certificates := func(*http.Request) (auth.Caller, error) { return auth.Caller{UserID: "harbor"}, nil }
	authenticate := auth.First(tokens, certificates)

	r := httptest.NewRequest(http.MethodPost, "/api/chat", nil)
	caller, err := authenticate(r)
	fmt.Println(caller.UserID, err)
	r.Header.Set("Authorization", "Bearer guess")
	_, err = authenticate(r)
	fmt.Println(err)
	// Output:
	// harbor <nil>
	// auth: the credential is not accepted
}
