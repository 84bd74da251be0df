package auth

// ServerTLSAt is ServerTLS with a clock.
var ServerTLSAt = serverTLS
