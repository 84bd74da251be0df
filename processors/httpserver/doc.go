// Package httpserver makes servers and listeners with limits for connections and headers, which the doors of this module
// cannot limit: a door sees a request after its headers have arrived.
//
//	server := httpserver.New(handler)
//	listener, err := httpserver.Listen("127.0.0.1:8080")
//	...
//	err = httpserver.Serve(ctx, server, listener, 5*time.Second)
//
// The limits are those of ports that anyone can reach. A port behind a reverse proxy has one client, the proxy: raise
// WithAddressLimit there, and serve the doors through WithTrustedProxies, so that they count the proxy's clients.
package httpserver
