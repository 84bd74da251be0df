package auth_test

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors/auth"
)

// Services are named by the URI of their certificates and may read every session.
func Example_certificates() {
	every, err := auth.ParseSessions("*")
	if err != nil {
		panic(err)
	}
	certificates, err := auth.NewCertificates(auth.CertificateConfig{Name: auth.NameURI, Sessions: every, Rights: auth.Read})
	if err != nil {
		panic(err)
	}
	var authenticate auth.Authenticate = certificates.Authenticate // for example auth.Door{Authenticate: authenticate}
	fmt.Println(authenticate != nil)
	// Output: true
}
