package auth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/auth"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

var serial int64

func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	serial++
	template.SerialNumber = big.NewInt(serial)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	require.NoError(a.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return cert, key
}

func (a *authority) issue(name string, usage x509.ExtKeyUsage) (cert, key []byte, pair tls.Certificate) {
	a.t.Helper()
	c, k := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	})
	der, err := x509.MarshalPKCS8PrivateKey(k)
	require.NoError(a.t, err)
	cert, key = block("CERTIFICATE", c.Raw), block("PRIVATE KEY", der)
	pair, err = tls.X509KeyPair(cert, key)
	require.NoError(a.t, err)
	return cert, key, pair
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// fixture is a server on loopback whose files tests change.
type fixture struct {
	t     *testing.T
	files auth.TLSFiles
	clock *clock.Fake
	http  *httptest.Server
	roots *x509.CertPool
}

func newFixture(t *testing.T, server *authority, clients *authority, optional bool) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{t: t, roots: x509.NewCertPool(), clock: clock.NewFake(noon), files: auth.TLSFiles{
		Certificate: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"), ClientsOptional: optional,
	}}
	f.roots.AddCert(server.cert)
	cert, key, _ := server.issue("first", x509.ExtKeyUsageServerAuth)
	f.write(f.files.Certificate, cert)
	f.write(f.files.Key, key)
	if clients != nil {
		f.files.ClientAuthorities = filepath.Join(dir, "clients")
		f.write(f.files.ClientAuthorities, block("CERTIFICATE", clients.cert.Raw))
	}
	config, err := auth.ServerTLSAt(f.files, nil, f.clock.Now)
	require.NoError(t, err)
	f.http = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := "no one"
		if len(r.TLS.VerifiedChains) > 0 {
			user = r.TLS.VerifiedChains[0][0].Subject.CommonName
		}
		fmt.Fprint(w, user, " ", r.Proto)
	}))
	f.http.Config.ErrorLog = nil
	f.http.TLS = config
	f.http.StartTLS()
	t.Cleanup(f.http.Close)
	return f
}

// write replaces a file and moves the clock to when it may be read again.
func (f *fixture) write(path string, content []byte) {
	f.t.Helper()
	f.clock.Advance(time.Second)
	require.NoError(f.t, os.WriteFile(path, content, 0o600))
}

// get returns the answer and the name of the server's certificate, on a connection of its own.
func (f *fixture) get(pairs ...tls.Certificate) (answer, server string, err error) {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: f.roots, Certificates: pairs}, ForceAttemptHTTP2: true,
	}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get(f.http.URL)
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), response.TLS.PeerCertificates[0].Subject.CommonName, err
}

func TestServerUsesChangedCertificates(t *testing.T) {
	a := newAuthority(t, "authority")
	f := newFixture(t, a, nil, false)
	answer, server, err := f.get()
	require.NoError(t, err)
	require.Equal(t, []string{"no one HTTP/2.0", "first"}, []string{answer, server})

	cert, key, _ := a.issue("second", x509.ExtKeyUsageServerAuth)
	f.write(f.files.Certificate, cert) // it does not fit the key yet
	_, server, err = f.get()
	require.NoError(t, err)
	require.Equal(t, "first", server)
	f.write(f.files.Key, key)
	_, server, err = f.get()
	require.NoError(t, err)
	require.Equal(t, "second", server)
}

func TestClientCertificatesAreVerified(t *testing.T) {
	server, clients, others := newAuthority(t, "server"), newAuthority(t, "clients"), newAuthority(t, "others")
	_, _, mira := clients.issue("mira", x509.ExtKeyUsageClientAuth)
	_, _, foreign := others.issue("mira", x509.ExtKeyUsageClientAuth)
	_, _, host := clients.issue("mira", x509.ExtKeyUsageServerAuth)

	f := newFixture(t, server, clients, false)
	answer, _, err := f.get(mira)
	require.NoError(t, err)
	require.Equal(t, "mira HTTP/2.0", answer)
	for name, pairs := range map[string][]tls.Certificate{"none": nil, "another authority": {foreign}, "a server's": {host}} {
		_, _, err = f.get(pairs...)
		require.Error(t, err, name)
	}

	f = newFixture(t, server, clients, true)
	answer, _, err = f.get()
	require.NoError(t, err)
	require.Equal(t, "no one HTTP/2.0", answer)
	_, _, err = f.get(host)
	require.Error(t, err, "a certificate that is sent must be valid")

	// An authority that is replaced is no longer trusted.
	f.write(f.files.ClientAuthorities, block("CERTIFICATE", others.cert.Raw))
	answer, _, err = f.get(foreign)
	require.NoError(t, err)
	require.Equal(t, "mira HTTP/2.0", answer)
	answer, _, err = f.get(mira) // a client does not send a certificate of an authority that the server does not name
	require.True(t, err != nil || answer == "no one HTTP/2.0", answer)
}

func TestUnusableTLSFilesAreRejected(t *testing.T) {
	a := newAuthority(t, "authority")
	cert, key, _ := a.issue("server", x509.ExtKeyUsageServerAuth)
	_, other, _ := a.issue("server", x509.ExtKeyUsageServerAuth)
	dir := t.TempDir()
	path := func(name string, content []byte) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, content, 0o600))
		return name
	}
	c, k, o, e := path("c", cert), path("k", key), path("o", other), path("e", nil)
	for name, files := range map[string]auth.TLSFiles{
		"no key": {Certificate: c}, "no certificate": {Key: k}, "empty": {Certificate: e, Key: k},
		"another key": {Certificate: c, Key: o}, "no authority": {Certificate: c, Key: k, ClientAuthorities: e},
	} {
		_, err := auth.ServerTLS(files, nil)
		require.ErrorIs(t, err, auth.ErrTLSFiles, name)
	}
	_, err := auth.ServerTLS(auth.TLSFiles{Certificate: c, Key: filepath.Join(dir, "absent")}, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}
