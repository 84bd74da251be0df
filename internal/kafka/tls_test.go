package kafka_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
)

// issue makes a self-signed certificate for broker.test and its key, as PEM.
func issue(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker.test"}, DNSNames: []string{"broker.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func write(t *testing.T, contents ...[]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.pem")
	var all []byte
	for _, c := range contents {
		all = append(all, c...)
	}
	require.NoError(t, os.WriteFile(path, all, 0o600))
	return path
}

// handshake connects to a broker with the certificate, which wants one of the client too.
func handshake(t *testing.T, certificate, key []byte, client *tls.Config) error {
	t.Helper()
	pair, err := tls.X509KeyPair(certificate, key)
	require.NoError(t, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert,
	})
	require.NoError(t, err)
	defer listener.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		if conn, err := listener.Accept(); err == nil {
			_ = conn.(*tls.Conn).Handshake()
			conn.Close()
		}
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	err = tls.Client(conn, client).Handshake()
	conn.Close()
	<-served
	return err
}

func apply(t *testing.T, properties map[string]string) (*tls.Config, error) {
	t.Helper()
	c := kafka.Config()
	outcome, err := kafka.Apply(c, properties, nil)
	require.Empty(t, outcome.Ignored)
	return c.Net.TLS.Config, err
}

func TestCertificatesAreReadAsPEM(t *testing.T) {
	certificate, key := issue(t)
	both := write(t, key, certificate) // in any order
	for name, properties := range map[string]map[string]string{
		"librdkafka": {
			"ssl.ca.location": write(t, certificate), "ssl.certificate.location": write(t, certificate),
			"ssl.key.location": write(t, key),
		},
		"java files": {"ssl.truststore.location": both, "ssl.keystore.location": both, "ssl.keystore.type": "PEM"},
		"java inline": {
			"ssl.truststore.certificates": string(certificate), "ssl.keystore.certificate.chain": string(certificate),
			"ssl.keystore.key": string(key),
		},
	} {
		properties["security.protocol"] = "SSL"
		c, err := apply(t, properties)
		require.NoError(t, err, name)
		c.ServerName = "broker.test"
		require.NoError(t, handshake(t, certificate, key, c), name)
		c.ServerName = "other.test"
		require.Error(t, handshake(t, certificate, key, c), name)
	}
}

func TestHostNamesCanBeLeftUnverifiedAndNothingElse(t *testing.T) {
	certificate, key := issue(t)
	foreign, _ := issue(t)
	for _, algorithm := range []string{"", "none"} {
		properties := map[string]string{
			"security.protocol": "SSL", "ssl.keystore.location": write(t, certificate, key),
			"ssl.truststore.location":               write(t, certificate),
			"ssl.endpoint.identification.algorithm": algorithm,
		}
		c, err := apply(t, properties)
		require.NoError(t, err)
		c.ServerName = "other.test"
		require.NoError(t, handshake(t, certificate, key, c))

		properties["ssl.truststore.location"] = write(t, foreign)
		c, err = apply(t, properties)
		require.NoError(t, err)
		require.Error(t, handshake(t, certificate, key, c), "the chain is verified")
	}
}

func TestUnusableCertificatesAreRefusedWithoutQuotingThem(t *testing.T) {
	certificate, key := issue(t)
	_, otherKey := issue(t)
	for name, properties := range map[string]map[string]string{
		"no certificate":   {"ssl.ca.pem": string(key)},
		"no key":           {"ssl.certificate.pem": string(certificate)},
		"key of another":   {"ssl.certificate.pem": string(certificate), "ssl.key.pem": string(otherKey)},
		"no such file":     {"ssl.ca.location": "/nonexistent/ca.pem"},
		"encrypted key":    {"ssl.key.password": "hunter2"},
		"a Java keystore":  {"ssl.keystore.type": "JKS"},
		"an old protocol":  {"ssl.protocol": "SSLv3"},
		"strange identity": {"ssl.endpoint.identification.algorithm": "ldaps"},
	} {
		properties["security.protocol"] = "SSL"
		_, err := apply(t, properties)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "PRIVATE", name)
		require.NotContains(t, err.Error(), "hunter2", name)
	}
}

func TestProtocolVersionsAreABoundOnBothSides(t *testing.T) {
	c, err := apply(t, map[string]string{"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.2, TLSv1.3"})
	require.NoError(t, err)
	require.EqualValues(t, tls.VersionTLS12, c.MinVersion)
	require.EqualValues(t, tls.VersionTLS13, c.MaxVersion)
	c, err = apply(t, map[string]string{"security.protocol": "SSL"})
	require.NoError(t, err)
	require.EqualValues(t, tls.VersionTLS12, c.MinVersion)
	require.Zero(t, c.MaxVersion)
}
