package auth_test

import (
	"log"
	"net/http"

	"github.com/turntable-streams/turntable/processors/auth"
)

// A server has its certificate and the authorities of its clients in files, which can be replaced while it runs.
func Example_serverTLS() {
	config, err := auth.ServerTLS(auth.TLSFiles{
		Certificate: "server.crt", Key: "server.key", ClientAuthorities: "clients.crt",
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8443", TLSConfig: config}
	log.Fatal(server.ListenAndServeTLS("", "")) // the files are those of the configuration
}
