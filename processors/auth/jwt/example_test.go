package jwt_test

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/auth/jwt"
)

// Tokens of an identity provider are accepted, and may use the sessions and rights that their claims list.
func Example() {
	tokens, err := jwt.New("https://id.example/.well-known/jwks.json", "https://id.example", "turntable",
		jwt.Config{Algorithms: []string{"RS256"}, SessionsClaim: "sessions", RightsClaim: "scope"})
	if err != nil {
		panic(err)
	}
	var authenticate auth.Authenticate = tokens.Authenticate // for example auth.Door{Authenticate: authenticate}
	fmt.Println(authenticate != nil)
	// Output: true
}
