package kafka_test

import (
	"encoding/asn1"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
)

func TestStoresInOtherFormatsAreAnsweredWithTheCommandsThatConvertThem(t *testing.T) {
	jks := []byte{0xFE, 0xED, 0xFE, 0xED, 0, 0, 0, 2, 0, 0, 0, 1}
	pkcs12, err := asn1.Marshal(struct {
		Version int
		Content []byte
	}{3, []byte("content")})
	require.NoError(t, err)
	certificate, key := issue(t)
	block, _ := pem.Decode(certificate)
	privateBlock, _ := pem.Decode(key)
	const (
		list     = `keytool -list -rfc -keystore `
		imported = `keytool -importkeystore -srckeystore keystore.jks -srcstoretype JKS -destkeystore keystore.p12 ` +
			`-deststoretype PKCS12 && openssl pkcs12 -in keystore.p12 -nodes -out keystore.pem`
	)
	for name, tc := range map[string]struct {
		properties map[string]string
		want       string
	}{
		"JKS truststore by its content": {
			map[string]string{"ssl.truststore.location": write(t, jks)}, list + `truststore.jks > truststore.pem`,
		},
		"declared JKS truststore": {
			map[string]string{"ssl.truststore.location": write(t, jks), "ssl.truststore.type": "jks"},
			"then name the PEM file, and set ssl.truststore.type to PEM",
		},
		"declared without a file": {map[string]string{"ssl.truststore.type": "JKS"}, list + `truststore.jks > truststore.pem`},
		"PKCS12 truststore":       {map[string]string{"ssl.truststore.location": write(t, pkcs12)}, list + `truststore.p12 > truststore.pem`},
		"JKS keystore":            {map[string]string{"ssl.keystore.location": write(t, jks)}, imported},
		"declared JKS keystore":   {map[string]string{"ssl.keystore.type": "JKS"}, imported},
		"PKCS12 keystore": {
			map[string]string{"ssl.keystore.location": write(t, pkcs12)},
			"openssl pkcs12 -in keystore.p12 -nodes -out keystore.pem",
		},
		"DER authorities": {
			map[string]string{"ssl.ca.location": write(t, block.Bytes)},
			"openssl x509 -inform DER -in truststore.der -out truststore.pem",
		},
		"DER key": {
			map[string]string{"ssl.key.location": write(t, privateBlock.Bytes), "ssl.certificate.location": write(t, certificate)},
			"openssl pkey -inform DER -in key.der -out key.pem",
		},
		"encrypted key": {map[string]string{"ssl.key.password": "hunter2"}, "openssl pkey -in key.pem -out plain.pem"},
		"PEM that is declared as JKS": {
			map[string]string{"ssl.truststore.location": write(t, certificate), "ssl.truststore.type": "JKS"},
			"the file is PEM; set ssl.truststore.type to PEM",
		},
		"unknown format": {map[string]string{"ssl.keystore.type": "BCFKS"}, "want PEM"},
	} {
		tc.properties["security.protocol"] = "SSL"
		_, err := kafka.Apply(kafka.Config(), tc.properties, nil)
		require.ErrorContains(t, err, tc.want, name)
		require.NotContains(t, err.Error(), "hunter2", name)
		for property, value := range tc.properties {
			if strings.HasSuffix(property, ".location") {
				require.NotContains(t, err.Error(), value, "a value is not printed")
			}
		}
	}
	_, err = kafka.Apply(kafka.Config(), map[string]string{
		"security.protocol": "SSL", "ssl.truststore.location": write(t, jks),
	}, func(property string) string { return strings.ReplaceAll(strings.ToUpper(property), ".", "_") })
	require.ErrorContains(t, err, `keytool -list -rfc -keystore "$SSL_TRUSTSTORE_LOCATION" > truststore.pem`)
}
