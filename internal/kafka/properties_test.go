package kafka_test

import (
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
)

func TestPropertiesMapOntoSarama(t *testing.T) {
	type conf = sarama.Config
	const newest = sarama.OffsetNewest
	for name, tc := range map[string]struct {
		value string
		got   func(*conf) any
		want  any
	}{
		"client.id":         {"flight-7", func(c *conf) any { return c.ClientID }, "flight-7"},
		"client.rack":       {"r1", func(c *conf) any { return c.RackID }, "r1"},
		"group.instance.id": {"i-1", func(c *conf) any { return c.Consumer.Group.InstanceId }, "i-1"},
		"compression.type":  {"zstd", func(c *conf) any { return c.Producer.Compression }, sarama.CompressionZSTD},
		"compression.codec": {"LZ4", func(c *conf) any { return c.Producer.Compression }, sarama.CompressionLZ4},
		"max.request.size":  {"2097152", func(c *conf) any { return c.Producer.MaxMessageBytes }, 2 << 20},
		"retries":           {"7", func(c *conf) any { return c.Producer.Retry.Max }, 7},
		"session.timeout.ms": {
			"6000", func(c *conf) any { return c.Consumer.Group.Session.Timeout },
			6 * time.Second,
		},
		"heartbeat.interval.ms": {
			" 2000 ", func(c *conf) any { return c.Consumer.Group.Heartbeat.Interval },
			2 * time.Second,
		},
		"max.poll.interval.ms": {
			"15000", func(c *conf) any { return c.Consumer.Group.Rebalance.Timeout },
			15 * time.Second,
		},
		"metadata.max.age.ms":       {"300000", func(c *conf) any { return c.Metadata.RefreshFrequency }, 5 * time.Minute},
		"fetch.min.bytes":           {"5", func(c *conf) any { return c.Consumer.Fetch.Min }, int32(5)},
		"fetch.max.bytes":           {"9", func(c *conf) any { return c.Consumer.Fetch.MaxBytes }, int32(9)},
		"max.partition.fetch.bytes": {"77", func(c *conf) any { return c.Consumer.Fetch.Default }, int32(77)},
		"fetch.max.wait.ms":         {"200", func(c *conf) any { return c.Consumer.MaxWaitTime }, 200 * time.Millisecond},
		"auto.offset.reset":         {"latest", func(c *conf) any { return c.Consumer.Offsets.Initial }, newest},
		"default.api.timeout.ms":    {"9000", func(c *conf) any { return c.Admin.Timeout }, 9 * time.Second},
		"retry.backoff.ms":          {"70", func(c *conf) any { return c.Producer.Retry.BackoffFunc == nil }, true},
		"allow.auto.create.topics":  {"true", func(c *conf) any { return c.Metadata.AllowAutoTopicCreation }, true},
		"linger.ms":                 {"5", func(c *conf) any { return c.Producer.Flush.Frequency }, 5 * time.Millisecond},
		"request.timeout.ms":        {"5000", func(c *conf) any { return c.Producer.Timeout }, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			c := kafka.Config()
			outcome, err := kafka.Apply(c, map[string]string{name: tc.value}, nil)
			require.NoError(t, err)
			require.Empty(t, outcome.Ignored)
			require.Equal(t, tc.want, tc.got(c))
			require.NoError(t, c.Validate())
			require.Greater(t, c.Net.ReadTimeout, c.Consumer.Group.Rebalance.Timeout, "the answer to a join")
		})
	}
}

func TestLingeringBatchIsSentWhenItIsFull(t *testing.T) {
	c := kafka.Config()
	_, err := kafka.Apply(c, map[string]string{"linger.ms": "5", "batch.size": "100"}, nil)
	require.NoError(t, err)
	require.Equal(t, 100, c.Producer.Flush.Bytes)
}

func TestPropertiesThatBreakAGuaranteeAreRefusedByName(t *testing.T) {
	for name, value := range map[string]string{
		"acks": "1", "enable.idempotence": "false", "partitioner.class": "com.example.RoundRobin",
		"partitioner": "consistent_random", "isolation.level": "read_uncommitted", "processing.guarantee": "at_most_once",
		"ssl.enabled.protocols": "TLSv1",
	} {
		_, err := kafka.Apply(kafka.Config(), map[string]string{name: value}, nil)
		require.ErrorIs(t, err, kafka.ErrRefused, name)
		require.ErrorContains(t, err, name)
	}
	for name, value := range map[string]string{
		"acks": "all", "enable.idempotence": "true", "partitioner": "murmur2_random", "isolation.level": "read_committed",
		"processing.guarantee": "exactly_once_v2",
	} {
		outcome, err := kafka.Apply(kafka.Config(), map[string]string{name: value}, nil)
		require.NoError(t, err, name)
		require.Empty(t, outcome.Ignored, name)
	}
	_, err := kafka.Apply(kafka.Config(), map[string]string{"acks": "-1"}, nil)
	require.NoError(t, err)
}

func TestBadValuesAreNamedTogether(t *testing.T) {
	_, err := kafka.Apply(kafka.Config(), map[string]string{
		"linger.ms": "soon", "retries": "0", "fetch.max.bytes": "99999999999", "auto.offset.reset": "none",
		"security.protocol": "TLS", "allow.auto.create.topics": "yes",
	}, nil)
	require.ErrorIs(t, err, kafka.ErrValue)
	for _, name := range []string{
		"linger.ms", "retries", "fetch.max.bytes", "auto.offset.reset", "security.protocol", "allow.auto.create.topics",
	} {
		require.ErrorContains(t, err, name)
	}
	_, err = kafka.Apply(kafka.Config(), map[string]string{"session.timeout.ms": "500", "heartbeat.interval.ms": "900"}, nil)
	require.ErrorContains(t, err, "Heartbeat")
}

func TestPropertiesWithoutEffectAreReportedByName(t *testing.T) {
	outcome, err := kafka.Apply(kafka.Config(), map[string]string{
		"heap.opts": "-Xmx1g", "client.id": " ", "batch.size": "100", "sasl.password": "hunter2", "ssl.key.location": "", "security.protocol": "PLAINTEXT",
		"max.poll.interval.ms": "600000", "bootstrap.servers": "b:9092", "replication.factor": "3", "state.dir": "/data",
	}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{
		"batch.size", "client.id", "heap.opts", "max.poll.interval.ms", "sasl.password", "ssl.key.location",
	}, outcome.Ignored)
}

func TestPasswordsAreNotTrimmed(t *testing.T) {
	c := kafka.Config()
	outcome, err := kafka.Apply(c, map[string]string{
		"security.protocol": "sasl_plaintext", "sasl.mechanism": "plain",
		"sasl.username": "ann", "sasl.password": " pa ss ",
	}, nil)
	require.NoError(t, err)
	require.Empty(t, outcome.Ignored)
	require.True(t, c.Net.SASL.Enable)
	require.EqualValues(t, sarama.SASLTypePlaintext, c.Net.SASL.Mechanism)
	require.Equal(t, " pa ss ", c.Net.SASL.Password)
}

const plain = "org.apache.kafka.common.security.plain.PlainLoginModule "

func TestJAASGivesUserAndPassword(t *testing.T) {
	for config, want := range map[string][2]string{
		plain + `required username="ann" password="b;\"c' d";`:                                              {"ann", `b;"c' d`},
		"org.apache.kafka.common.security.plain.PlainLoginModule\n required username=ann\n password='x' ; ": {"ann", "x"},
	} {
		c := kafka.Config()
		_, err := kafka.Apply(c, map[string]string{"security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": config}, nil)
		require.NoError(t, err)
		require.Equal(t, want, [2]string{c.Net.SASL.User, c.Net.SASL.Password})
	}
	for config, want := range map[string]error{
		`com.example.Login required password="hunter2";`:                                                    kafka.ErrRefused,
		`org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="hunter2"`:  kafka.ErrValue,
		`org.apache.kafka.common.security.plain.PlainLoginModule required hunter2;`:                         kafka.ErrValue,
		`org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="hunter2";`: kafka.ErrValue,
		`hunter2;`: kafka.ErrValue,
	} {
		_, err := kafka.Apply(kafka.Config(), map[string]string{
			"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": config,
		}, nil)
		require.ErrorIs(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestSASLMechanismsAreConfiguredOrRefused(t *testing.T) {
	properties := map[string]string{
		"security.protocol": "SASL_PLAINTEXT", "sasl.username": "ann", "sasl.password": "hunter2",
	}
	for _, mechanism := range []string{"SCRAM-SHA-256", "scram-sha-512"} {
		properties["sasl.mechanism"] = mechanism
		c := kafka.Config()
		_, err := kafka.Apply(c, properties, nil)
		require.NoError(t, err)
		conversation := c.Net.SASL.SCRAMClientGeneratorFunc()
		require.NoError(t, conversation.Begin("ann", "hunter2", ""))
		first, err := conversation.Step("")
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(first, "n,,n=ann,r="))
		require.False(t, conversation.Done())
	}
	for _, mechanism := range []string{"GSSAPI", "AWS_MSK_IAM"} {
		properties["sasl.mechanism"] = mechanism
		_, err := kafka.Apply(kafka.Config(), properties, nil)
		require.ErrorIs(t, err, kafka.ErrRefused)
		require.ErrorContains(t, err, "not supported, want one of PLAIN")
		require.NotContains(t, err.Error(), "hunter2")
	}
	delete(properties, "sasl.mechanism")
	_, err := kafka.Apply(kafka.Config(), properties, nil)
	require.ErrorContains(t, err, "sasl.mechanism")
}

// A secret can be in the wrong variable, and errors are logged.
func TestErrorsContainNoValue(t *testing.T) {
	const secret = "-----BEGIN PRIVATE KEY-----MIIEvSECRET"
	refused := 0
	for _, name := range kafka.Supported() {
		for _, protocol := range []string{"SSL", "SASL_SSL", secret} {
			properties := map[string]string{
				"security.protocol": protocol, "sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": "b", name: secret,
			}
			if _, err := kafka.Apply(kafka.Config(), properties, nil); err != nil {
				refused++
				require.NotContains(t, strings.ToUpper(err.Error()), "SECRET", name)
				require.NotContains(t, err.Error(), "MII", name)
			}
		}
	}
	require.Greater(t, refused, 60)
}
