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
	for name, tc := range map[string]struct {
		value string
		check func(*testing.T, *sarama.Config)
	}{
		"client.id":         {"flight-7", func(t *testing.T, c *sarama.Config) { require.Equal(t, "flight-7", c.ClientID) }},
		"client.rack":       {"r1", func(t *testing.T, c *sarama.Config) { require.Equal(t, "r1", c.RackID) }},
		"group.instance.id": {"i-1", func(t *testing.T, c *sarama.Config) { require.Equal(t, "i-1", c.Consumer.Group.InstanceId) }},
		"compression.type":  {"zstd", func(t *testing.T, c *sarama.Config) { require.Equal(t, sarama.CompressionZSTD, c.Producer.Compression) }},
		"compression.codec": {"LZ4", func(t *testing.T, c *sarama.Config) { require.Equal(t, sarama.CompressionLZ4, c.Producer.Compression) }},
		"max.request.size":  {"2097152", func(t *testing.T, c *sarama.Config) { require.Equal(t, 2<<20, c.Producer.MaxMessageBytes) }},
		"retries":           {"7", func(t *testing.T, c *sarama.Config) { require.Equal(t, 7, c.Producer.Retry.Max) }},
		"session.timeout.ms": {"6000", func(t *testing.T, c *sarama.Config) {
			require.Equal(t, 6*time.Second, c.Consumer.Group.Session.Timeout)
		}},
		"heartbeat.interval.ms": {" 2000 ", func(t *testing.T, c *sarama.Config) {
			require.Equal(t, 2*time.Second, c.Consumer.Group.Heartbeat.Interval)
		}},
		"max.poll.interval.ms": {"15000", func(t *testing.T, c *sarama.Config) {
			require.Equal(t, 15*time.Second, c.Consumer.Group.Rebalance.Timeout)
		}},
		"metadata.max.age.ms": {"300000", func(t *testing.T, c *sarama.Config) { require.Equal(t, 5*time.Minute, c.Metadata.RefreshFrequency) }},
		"fetch.min.bytes":     {"5", func(t *testing.T, c *sarama.Config) { require.EqualValues(t, 5, c.Consumer.Fetch.Min) }},
		"fetch.max.bytes":     {"9", func(t *testing.T, c *sarama.Config) { require.EqualValues(t, 9, c.Consumer.Fetch.MaxBytes) }},
		"fetch.max.wait.ms":   {"200", func(t *testing.T, c *sarama.Config) { require.Equal(t, 200*time.Millisecond, c.Consumer.MaxWaitTime) }},
		"auto.offset.reset": {"latest", func(t *testing.T, c *sarama.Config) {
			require.Equal(t, sarama.OffsetNewest, c.Consumer.Offsets.Initial)
		}},
		"default.api.timeout.ms":    {"9000", func(t *testing.T, c *sarama.Config) { require.Equal(t, 9*time.Second, c.Admin.Timeout) }},
		"retry.backoff.ms":          {"70", func(t *testing.T, c *sarama.Config) { require.Nil(t, c.Producer.Retry.BackoffFunc) }},
		"allow.auto.create.topics":  {"true", func(t *testing.T, c *sarama.Config) { require.True(t, c.Metadata.AllowAutoTopicCreation) }},
		"max.partition.fetch.bytes": {"77", func(t *testing.T, c *sarama.Config) { require.EqualValues(t, 77, c.Consumer.Fetch.Default) }},
		"request.timeout.ms": {"5000", func(t *testing.T, c *sarama.Config) {
			require.Equal(t, 5*time.Second, c.Producer.Timeout)
			require.Greater(t, c.Net.ReadTimeout, c.Consumer.Group.Rebalance.Timeout)
		}},
		"linger.ms": {"5", func(t *testing.T, c *sarama.Config) {
			require.Equal(t, 5*time.Millisecond, c.Producer.Flush.Frequency)
			require.Positive(t, c.Producer.Flush.Bytes, "a full batch does not wait")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := kafka.Config()
			ignored, err := kafka.Apply(c, map[string]string{name: tc.value})
			require.NoError(t, err)
			require.Empty(t, ignored)
			tc.check(t, c)
			require.NoError(t, c.Validate())
		})
	}
}

func TestWhatBreaksAPromiseIsRefusedByName(t *testing.T) {
	for name, value := range map[string]string{
		"acks": "1", "enable.idempotence": "false", "partitioner.class": "com.example.RoundRobin",
		"partitioner": "consistent_random", "isolation.level": "read_uncommitted", "processing.guarantee": "exactly_once_v2",
		"ssl.truststore.type": "JKS", "ssl.enabled.protocols": "TLSv1",
	} {
		_, err := kafka.Apply(kafka.Config(), map[string]string{name: value})
		require.ErrorIs(t, err, kafka.ErrRefused, name)
		require.ErrorContains(t, err, name)
	}
	for name, value := range map[string]string{
		"acks": "all", "enable.idempotence": "true", "partitioner": "murmur2_random", "isolation.level": "read_committed",
		"processing.guarantee": "at_least_once",
	} {
		ignored, err := kafka.Apply(kafka.Config(), map[string]string{name: value})
		require.NoError(t, err, name)
		require.Empty(t, ignored, name)
	}
	_, err := kafka.Apply(kafka.Config(), map[string]string{"acks": "-1"})
	require.NoError(t, err)
}

func TestBadValuesAreNamedTogether(t *testing.T) {
	_, err := kafka.Apply(kafka.Config(), map[string]string{
		"linger.ms": "soon", "retries": "0", "fetch.max.bytes": "99999999999", "auto.offset.reset": "none",
		"security.protocol": "TLS", "allow.auto.create.topics": "yes",
	})
	require.ErrorIs(t, err, kafka.ErrValue)
	for _, name := range []string{
		"linger.ms", "retries", "fetch.max.bytes", "auto.offset.reset", "security.protocol", "allow.auto.create.topics",
	} {
		require.ErrorContains(t, err, name)
	}
	_, err = kafka.Apply(kafka.Config(), map[string]string{"session.timeout.ms": "500", "heartbeat.interval.ms": "900"})
	require.ErrorContains(t, err, "Heartbeat")
}

func TestWhatHasNoEffectIsReportedByName(t *testing.T) {
	ignored, err := kafka.Apply(kafka.Config(), map[string]string{
		"heap.opts": "-Xmx1g", "client.id": " ", "batch.size": "100", "sasl.password": "hunter2", "ssl.key.location": "",
		"max.poll.interval.ms": "600000", "bootstrap.servers": "b:9092", "replication.factor": "3", "state.dir": "/data",
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		"batch.size", "client.id", "heap.opts", "max.poll.interval.ms", "sasl.password", "ssl.key.location",
	}, ignored)
}

func TestPasswordsAreTakenAsTheyAre(t *testing.T) {
	c := kafka.Config()
	ignored, err := kafka.Apply(c, map[string]string{
		"security.protocol": "sasl_plaintext", "sasl.mechanism": "plain", "sasl.username": "ann", "sasl.password": " pa ss ",
	})
	require.NoError(t, err)
	require.Empty(t, ignored)
	require.True(t, c.Net.SASL.Enable)
	require.EqualValues(t, sarama.SASLTypePlaintext, c.Net.SASL.Mechanism)
	require.Equal(t, " pa ss ", c.Net.SASL.Password)
}

func TestJAASGivesUserAndPassword(t *testing.T) {
	for config, want := range map[string][2]string{
		`org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="b;\"c' d";`: {"ann", `b;"c' d`},
		"org.apache.kafka.common.security.plain.PlainLoginModule\n required username=ann\n password='x' ; ":    {"ann", "x"},
	} {
		c := kafka.Config()
		_, err := kafka.Apply(c, map[string]string{"security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": config})
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
		})
		require.ErrorIs(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestSASLMechanisms(t *testing.T) {
	properties := map[string]string{
		"security.protocol": "SASL_PLAINTEXT", "sasl.username": "ann", "sasl.password": "hunter2",
	}
	for _, mechanism := range []string{"SCRAM-SHA-256", "scram-sha-512"} {
		properties["sasl.mechanism"] = mechanism
		c := kafka.Config()
		_, err := kafka.Apply(c, properties)
		require.NoError(t, err)
		conversation := c.Net.SASL.SCRAMClientGeneratorFunc()
		require.NoError(t, conversation.Begin("ann", "hunter2", ""))
		first, err := conversation.Step("")
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(first, "n,,n=ann,r="))
		require.False(t, conversation.Done())
	}
	for _, mechanism := range []string{"OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM"} {
		properties["sasl.mechanism"] = mechanism
		_, err := kafka.Apply(kafka.Config(), properties)
		require.ErrorIs(t, err, kafka.ErrRefused)
		require.ErrorContains(t, err, mechanism+" is not supported")
		require.NotContains(t, err.Error(), "hunter2")
	}
	delete(properties, "sasl.mechanism")
	_, err := kafka.Apply(kafka.Config(), properties)
	require.ErrorContains(t, err, "sasl.mechanism")
}
