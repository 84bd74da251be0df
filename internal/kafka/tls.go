package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// tlsProperties are the ssl.* properties, which are applied together. The PEM texts are those of the properties or of the
// files that they name.
type tlsProperties struct {
	roots       []byte
	certificate []byte
	key         []byte
	noHostNames bool
	noVerify    bool
	min, max    uint16
}

func transport() map[string]setter {
	file := func(field func(*tlsProperties) *[]byte) setter {
		return func(p *pass, value string) error {
			raw, err := readFile(value)
			*field(&p.tls) = raw
			return err
		}
	}
	inline := func(field func(*tlsProperties) *[]byte) setter {
		return func(p *pass, value string) error {
			// Environment files often cannot hold line breaks.
			*field(&p.tls) = []byte(strings.ReplaceAll(value, `\n`, "\n"))
			return nil
		}
	}
	roots := func(t *tlsProperties) *[]byte { return &t.roots }
	certificate := func(t *tlsProperties) *[]byte { return &t.certificate }
	key := func(t *tlsProperties) *[]byte { return &t.key }
	keystore := func(p *pass, value string) error {
		raw, err := readFile(value)
		p.tls.certificate, p.tls.key = raw, raw
		return err
	}
	format := only("a Java keystore cannot be read here, export it as PEM", "PEM")
	encrypted := func(*pass, string) error {
		return fmt.Errorf("%w: encrypted keys cannot be read here", ErrRefused)
	}
	return map[string]setter{
		"ssl.truststore.location":        file(roots),
		"ssl.truststore.certificates":    inline(roots),
		"ssl.truststore.type":            format,
		"ssl.ca.location":                file(roots),
		"ssl.ca.pem":                     inline(roots),
		"ssl.keystore.location":          keystore,
		"ssl.keystore.certificate.chain": inline(certificate),
		"ssl.keystore.key":               inline(key),
		"ssl.keystore.type":              format,
		"ssl.certificate.location":       file(certificate),
		"ssl.certificate.pem":            inline(certificate),
		"ssl.key.location":               file(key),
		"ssl.key.pem":                    inline(key),
		"ssl.key.password":               encrypted,
		endpointIdentification: oneOf(map[string]func(*pass){
			"https": func(p *pass) { p.tls.noHostNames = false },
			"none":  func(p *pass) { p.tls.noHostNames = true },
			"":      func(p *pass) { p.tls.noHostNames = true },
		}),
		"enable.ssl.certificate.verification": boolean(func(p *pass, on bool) { p.tls.noVerify = !on }),
		"ssl.protocol":                        versions,
		"ssl.enabled.protocols":               versions,
	}
}

// readFile reads a file that a property names. Its error does not name the file, because the value may be no path but a
// secret in the wrong place.
func readFile(name string) ([]byte, error) {
	raw, err := os.ReadFile(name)
	if wrapped := new(fs.PathError); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	switch {
	case err == nil:
		return raw, nil
	case strings.Contains(name, "-----BEGIN"):
		return nil, fmt.Errorf("%w: want the name of a PEM file, not its content", ErrValue)
	default:
		return nil, fmt.Errorf("%w: the file that it names cannot be read: %w", ErrValue, err)
	}
}

// versions takes a list such as "TLSv1.2,TLSv1.3"; "TLS" and "SSL" leave the choice to both sides.
func versions(p *pass, value string) error {
	numbers := map[string]uint16{"tlsv1.2": tls.VersionTLS12, "tlsv1.3": tls.VersionTLS13}
	for word := range strings.SplitSeq(value, ",") {
		word = strings.ToLower(strings.TrimSpace(word))
		if word == "tls" || word == "ssl" {
			continue
		}
		n, ok := numbers[word]
		if !ok {
			return fmt.Errorf("%w: want TLSv1.2 or TLSv1.3", ErrRefused)
		}
		if p.tls.min == 0 || n < p.tls.min {
			p.tls.min = n
		}
		p.tls.max = max(p.tls.max, n)
	}
	return nil
}

// config returns the TLS configuration of the connections.
func (t tlsProperties) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: max(t.min, tls.VersionTLS12), MaxVersion: t.max}
	if t.roots != nil {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(t.roots) {
			return nil, fmt.Errorf("kafka: trusted certificates: %w: no PEM certificate", ErrValue)
		}
	}
	if (t.certificate == nil) != (t.key == nil) {
		return nil, fmt.Errorf("kafka: client certificate: %w: certificate and key belong together", ErrValue)
	}
	if t.certificate != nil {
		// The cause is left out: it could quote the key.
		pair, err := tls.X509KeyPair(onlyPEM(t.certificate, "CERTIFICATE"), onlyPEM(t.key, "PRIVATE KEY"))
		if err != nil {
			return nil, fmt.Errorf("kafka: client certificate: %w: no PEM certificate with its unencrypted key", ErrValue)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	switch {
	case t.noVerify:
		c.InsecureSkipVerify = true
	case t.noHostNames:
		c.InsecureSkipVerify = true // of the name; the chain is verified below
		c.VerifyConnection = verifyChain(c.RootCAs)
	}
	return c, nil
}

// verifyChain returns a function that verifies a server's certificate chain but not its host name.
func verifyChain(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, c := range s.PeerCertificates[1:] {
			opts.Intermediates.AddCert(c)
		}
		_, err := s.PeerCertificates[0].Verify(opts)
		return err
	}
}

// onlyPEM returns the PEM blocks of a kind, so that one file may hold certificate and key in any order.
func onlyPEM(raw []byte, kind string) []byte {
	var kept []byte
	for {
		var block *pem.Block
		block, raw = pem.Decode(raw)
		if block == nil {
			return kept
		}
		if strings.HasSuffix(block.Type, kind) {
			kept = slices.Concat(kept, pem.EncodeToMemory(block))
		}
	}
}
