package mtls_test

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/auth/mtls"
)

// Services are named by the URI of their certificates and may read every session.
func Example() {
	every, err := auth.ParseSessions("*")
	if err != nil {
		panic(err)
	}
	certificates, err := mtls.New(mtls.WithName(mtls.URI), mtls.WithSessions(every), mtls.WithRights(auth.Read))
	if err != nil {
		panic(err)
	}
	var authenticate auth.Authenticate = certificates.Authenticate // for example websocket.WithAuthenticate(authenticate)
	fmt.Println(authenticate != nil)
	// Output: true
}
