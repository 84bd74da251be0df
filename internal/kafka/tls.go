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

const (
	truststoreLocation = "ssl.truststore.location"
	keystoreLocation   = "ssl.keystore.location"
	verification       = "enable.ssl.certificate.verification"
)

// tlsProperties are the ssl.* properties, which are applied together. The PEM texts are those of the properties or of the
// files that they name.
type tlsProperties struct {
	files       []storeFile
	declared    map[content]string // the formats that properties state
	roots       []byte
	certificate []byte
	key         []byte
	noHostNames bool
	noVerify    bool
	min, max    uint16
	tokenRoots  []byte // of the token endpoint
}

func transport() map[string]setter {
	roots := func(t *tlsProperties) *[]byte { return &t.roots }
	certificate := func(t *tlsProperties) *[]byte { return &t.certificate }
	key := func(t *tlsProperties) *[]byte { return &t.key }
	encrypted := func(*pass, string) error {
		return fmt.Errorf("%w: encrypted keys cannot be read; decrypt it with: openssl pkey -in key.pem -out plain.pem; then "+
			"name that file and restrict who can read it", ErrRefused)
	}
	return map[string]setter{
		truststoreLocation:               file(truststoreLocation, trusted, roots),
		"ssl.truststore.certificates":    inline(roots),
		"ssl.truststore.type":            storeType(trusted),
		"ssl.ca.location":                file("ssl.ca.location", trusted, roots),
		"ssl.ca.pem":                     inline(roots),
		keystoreLocation:                 file(keystoreLocation, both, certificate, key),
		"ssl.keystore.certificate.chain": inline(certificate),
		"ssl.keystore.key":               inline(key),
		"ssl.keystore.type":              storeType(both),
		"ssl.certificate.location":       file("ssl.certificate.location", chain, certificate),
		"ssl.certificate.pem":            inline(certificate),
		"ssl.key.location":               file("ssl.key.location", private, key),
		"ssl.key.pem":                    inline(key),
		"ssl.key.password":               encrypted,
		endpointIdentification: oneOf(map[string]func(*pass){
			"https": func(p *pass) { p.tls.noHostNames = false },
			"none":  func(p *pass) { p.tls.noHostNames = true },
			"":      func(p *pass) { p.tls.noHostNames = true },
		}),
		verification:            boolean(func(p *pass, on bool) { p.tls.noVerify = !on }),
		"ssl.protocol":          versions,
		"ssl.enabled.protocols": versions,
	}
}

// file takes the name of a file of certificates or keys, and stores its content.
func file(property string, c content, fields ...func(*tlsProperties) *[]byte) setter {
	return func(p *pass, value string) error {
		raw, err := readFile(value)
		if err != nil {
			return err
		}
		p.tls.files = append(p.tls.files, storeFile{property, c, raw})
		for _, field := range fields {
			*field(&p.tls) = raw
		}
		return nil
	}
}

// inline takes certificates or keys. Environment files often cannot hold line breaks.
func inline(field func(*tlsProperties) *[]byte) setter {
	return func(p *pass, value string) error {
		*field(&p.tls) = []byte(strings.ReplaceAll(value, `\n`, "\n"))
		return nil
	}
}

// storeType takes the format of a store. Other formats than PEM are refused when the content of the file is known.
func storeType(c content) setter {
	return func(p *pass, value string) error {
		format := strings.ToUpper(strings.TrimSpace(value))
		if !slices.Contains([]string{formatPEM, formatJKS, formatJCEKS, formatPKCS12}, format) {
			return fmt.Errorf("%w: this format cannot be read, want PEM", ErrRefused)
		}
		if p.tls.declared == nil {
			p.tls.declared = map[content]string{}
		}
		p.tls.declared[c] = format
		return nil
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

// tlsConfig returns the TLS configuration of the connections. The files have been checked.
func (p *pass) tlsConfig() (*tls.Config, []error) {
	t := p.tls
	c := &tls.Config{MinVersion: max(t.min, tls.VersionTLS12), MaxVersion: t.max}
	var errs []error
	refuse := func(reason string, properties ...string) {
		errs = append(errs, fmt.Errorf("kafka: %s: %w: %s", p.given(properties...), ErrValue, reason))
	}
	if t.roots != nil {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(t.roots) {
			refuse("no PEM certificate", truststoreLocation, "ssl.truststore.certificates", "ssl.ca.location", "ssl.ca.pem")
		}
	}
	if t.certificate != nil || t.key != nil {
		// The cause is left out: it could quote the key.
		pair, err := tls.X509KeyPair(onlyPEM(t.certificate, "CERTIFICATE"), onlyPEM(t.key, "PRIVATE KEY"))
		if err != nil {
			refuse("want a PEM certificate and its unencrypted key", keystoreLocation, "ssl.keystore.certificate.chain",
				"ssl.keystore.key", "ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location", "ssl.key.pem")
		}
		c.Certificates = []tls.Certificate{pair}
	}
	switch {
	case t.noVerify:
		c.InsecureSkipVerify = true
		p.warn("certificates of brokers are not verified (%s): anyone on the network path can impersonate a broker, and read "+
			"and change all records", p.name(verification))
	case t.noHostNames:
		c.InsecureSkipVerify = true // of the name; the chain is verified below
		c.VerifyConnection = verifyChain(c.RootCAs)
		p.warn("host names of brokers are not verified (%s): anyone who holds a certificate of the same authorities can "+
			"impersonate a broker, and read and change all records", p.name(endpointIdentification))
	}
	return c, errs
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
