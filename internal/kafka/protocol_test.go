package kafka_test

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
)

func TestSecurityPropertiesWithoutAProtocolAreRejected(t *testing.T) {
	certificate, _ := issue(t)
	usable := map[string]string{ // values that are valid on their own
		"ssl.truststore.location": write(t, certificate), "ssl.ca.location": write(t, certificate),
		"ssl.keystore.location": write(t, certificate), "ssl.certificate.location": write(t, certificate),
		"ssl.key.location": write(t, certificate), "ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM",
		"ssl.endpoint.identification.algorithm": "https", "enable.ssl.certificate.verification": "true",
		"ssl.protocol": "TLSv1.3", "ssl.enabled.protocols": "TLSv1.3",
	}
	tested := 0
	for _, name := range kafka.Supported() {
		if !strings.HasPrefix(name, "ssl.") && !strings.HasPrefix(name, "sasl.") && !strings.Contains(name, ".ssl.") {
			continue
		}
		value, ok := usable[name]
		if !ok {
			value = "hunter2"
		}
		for _, protocol := range []string{"", " "} {
			_, err := kafka.Apply(kafka.Config(), map[string]string{name: value, "security.protocol": protocol}, nil)
			require.Error(t, err, name)
			require.NotContains(t, err.Error(), "hunter2", name)
			if ok || strings.HasPrefix(name, "sasl.") && !strings.HasPrefix(name, "sasl.login.") {
				require.ErrorIs(t, err, kafka.ErrValue, name)
				require.ErrorContains(t, err, "security.protocol", name)
				require.ErrorContains(t, err, name)
				tested++
			}
		}
	}
	require.GreaterOrEqual(t, tested, 30)
}

func TestPlaintextCanBeChosenDespiteSecurityProperties(t *testing.T) {
	outcome, err := kafka.Apply(kafka.Config(), map[string]string{
		"security.protocol": "PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": "b",
	}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"sasl.mechanism", "sasl.password", "sasl.username"}, outcome.Ignored)
}

// Kubernetes sets such variables for a service named kafka-ssl, and templates leave blank ones.
func TestOtherNamesThatBeginLikeSecurityPropertiesNeedNoProtocol(t *testing.T) {
	outcome, err := kafka.Apply(kafka.Config(), map[string]string{
		"ssl.service.host": "10.0.0.7", "ssl.port": "tcp://10.0.0.7:9093", "sasl.password": "",
		"ssl.endpoint.identification.algorithm": "",
	}, nil)
	require.NoError(t, err)
	require.Len(t, outcome.Ignored, 4)
}

func TestErrorsUseTheNamesOfTheUser(t *testing.T) {
	variable := func(property string) string {
		return "KAFKA_" + strings.ReplaceAll(strings.ToUpper(property), ".", "_")
	}
	for want, properties := range map[string]map[string]string{
		"KAFKA_LINGER_MS: bad value":             {"linger.ms": "soon"},
		"KAFKA_SECURITY_PROTOCOL: bad value":     {"sasl.password": "x"},
		"KAFKA_SASL_PASSWORD without effect":     {"sasl.password": "x"},
		"KAFKA_SASL_MECHANISM: bad value":        {"security.protocol": "SASL_SSL"},
		"KAFKA_SASL_MECHANISM: refused":          {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"},
		"KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWO": {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
		"KAFKA_SASL_JAAS_CONFIG: bad value":      {"security.protocol": "SASL_SSL", "sasl.jaas.config": "x;"},
		"KAFKA_SSL_CA_PEM: bad value":            {"security.protocol": "SSL", "ssl.ca.pem": "x"},
		"KAFKA_SSL_KEY_PEM: bad value":           {"security.protocol": "SSL", "ssl.key.pem": "x"},
	} {
		_, err := kafka.Apply(kafka.Config(), properties, variable)
		require.ErrorContains(t, err, want)
	}
}

func TestWeakenedConnectionsAreWarnedAbout(t *testing.T) {
	ssl := func(more ...string) map[string]string {
		properties := map[string]string{"security.protocol": "SSL"}
		for i := 0; i < len(more); i += 2 {
			properties[more[i]] = more[i+1]
		}
		return properties
	}
	for name, tc := range map[string]struct {
		properties map[string]string
		want       string
	}{
		"blank algorithm":    {ssl("ssl.endpoint.identification.algorithm", ""), "host names of brokers are not verified"},
		"no algorithm":       {ssl("ssl.endpoint.identification.algorithm", "none"), "can impersonate a broker"},
		"no verification":    {ssl("enable.ssl.certificate.verification", "false"), "certificates of brokers are not verified"},
		"https":              {ssl("ssl.endpoint.identification.algorithm", "https"), ""},
		"verified":           {ssl("enable.ssl.certificate.verification", "true"), ""},
		"nothing said":       {ssl(), ""},
		"without TLS anyway": {map[string]string{"ssl.endpoint.identification.algorithm": ""}, ""},
	} {
		outcome, err := kafka.Apply(kafka.Config(), tc.properties, nil)
		require.NoError(t, err, name)
		if tc.want == "" {
			require.Empty(t, outcome.Warnings, name)
			continue
		}
		require.Len(t, outcome.Warnings, 1, name)
		require.Contains(t, outcome.Warnings[0], tc.want, name)
	}
}

func TestPasswordInCleartextIsWarnedAbout(t *testing.T) {
	properties := map[string]string{"sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": "hunter2"}
	warnings := func(protocol, mechanism string) []string {
		properties["security.protocol"], properties["sasl.mechanism"] = protocol, mechanism
		c := kafka.Config()
		_, err := kafka.Apply(c, properties, nil)
		require.NoError(t, err)
		return kafka.CleartextWarnings(c)
	}
	require.Len(t, warnings("SASL_PLAINTEXT", "PLAIN"), 1)
	require.Contains(t, warnings("SASL_PLAINTEXT", "PLAIN")[0], "password in clear text")
	require.NotContains(t, warnings("SASL_PLAINTEXT", "PLAIN")[0], "hunter2")
	require.Empty(t, warnings("SASL_SSL", "PLAIN"))
	require.Empty(t, warnings("SASL_PLAINTEXT", "SCRAM-SHA-512"), "the password is not sent")
	require.Empty(t, kafka.CleartextWarnings(kafka.Config()))

	c := kafka.Config()
	require.NoError(t, kafka.SetSASL(c, "PLAIN", "ann", "b"))
	c.Net.TLS.Enable, c.Net.TLS.Config = true, &tls.Config{}
	require.Empty(t, kafka.CleartextWarnings(c))
}
