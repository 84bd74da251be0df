package auth

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/internal/reload"
)

// TLSFiles are the files of a server, in PEM.
type TLSFiles struct {
	// Certificate has the server's certificate, followed by those of intermediate authorities. Key has its private key. Both
	// are required.
	Certificate, Key string
	// ClientAuthorities has the certificates of the authorities that sign client certificates. Empty means that clients are
	// not asked for certificates.
	ClientAuthorities string
	// ClientsOptional accepts clients without a certificate. A certificate that is sent must always be valid. It has no
	// effect without ClientAuthorities.
	ClientsOptional bool
}

// ErrTLSFiles is wrapped by the errors about the content of the files.
var ErrTLSFiles = errors.New("servertls: unusable files")

// ServerTLS makes the TLS configuration of a server from files, and uses the new certificates when the files have changed.
// Connections that are open keep the certificates that they began with. It accepts TLS 1.2 or newer, HTTP/2 and HTTP/1.1. The files are looked at when a client
// connects, at most once a second. Files that cannot be used change nothing: the former ones stay in use, and the reason is
// logged once. A client certificate is also checked against the current authorities when a session is resumed. An http.Server
// changes its configuration: give each a Clone. logger may be nil.
func ServerTLS(files TLSFiles, logger *zap.Logger) (*tls.Config, error) {
	return serverTLS(files, logger, time.Now)
}

func serverTLS(files TLSFiles, logger *zap.Logger, now func() time.Time) (*tls.Config, error) {
	if files.Certificate == "" || files.Key == "" {
		return nil, fmt.Errorf("%w: want a certificate and its key", ErrTLSFiles)
	}
	if logger == nil {
		logger = zap.NewNop()
	}
	paths := []string{files.Certificate, files.Key}
	if files.ClientAuthorities != "" {
		paths = append(paths, files.ClientAuthorities)
	}
	parse := func(contents [][]byte, _ *tls.Config) (*tls.Config, error) {
		return parseTLSFiles(contents, files.ClientsOptional)
	}
	current, err := reload.Open(parse, now, logger, paths...)
	if err != nil {
		return nil, fmt.Errorf("servertls: open files: %w", err)
	}
	outer := current.Get().Clone()
	// Session tickets are sealed with keys of the configuration that is current, so none outlives a change of the files.
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return current.Get(), nil }
	return outer, nil
}

func parseTLSFiles(contents [][]byte, optional bool) (*tls.Config, error) {
	certificate, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return nil, fmt.Errorf("%w: the certificate or its key: %w", ErrTLSFiles, err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	}
	if len(contents) == 2 {
		return config, nil
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(contents[2]) {
		return nil, fmt.Errorf("%w: no certificate of a client authority", ErrTLSFiles)
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	if optional {
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return config, nil
}
