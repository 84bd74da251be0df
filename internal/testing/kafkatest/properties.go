package kafkatest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// BrokerSession is the time without heartbeats after which a broker is considered failed and loses its leaders.
	BrokerSession = 3 * time.Second
	// InternalPartitions is the number of partitions of __consumer_offsets and __transaction_state.
	InternalPartitions = 5
)

// properties returns the server.properties of a node. voters are all nodes of its cluster, including itself.
func properties(n *node, voters []*node, more map[string]string) string {
	quorum := make([]string, len(voters))
	for i, v := range voters {
		quorum[i] = fmt.Sprintf("%d@%s", v.id, v.controller.addr())
	}
	replicas := len(voters)
	// With three nodes, a record that is acknowledged with acks=all is on two nodes, so one node may be lost.
	inSync := (replicas + 1) / 2

	settings := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        strconv.Itoa(n.id),
		"controller.quorum.voters":       strings.Join(quorum, ","),
		"controller.listener.names":      "CONTROLLER",
		"listeners":                      "PLAINTEXT://" + n.port.addr() + ",CONTROLLER://" + n.controller.addr(),
		"advertised.listeners":           "PLAINTEXT://" + n.port.addr(),
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs":                       n.logDir(),

		"default.replication.factor":                       strconv.Itoa(replicas),
		"min.insync.replicas":                              strconv.Itoa(inSync),
		"offsets.topic.replication.factor":                 strconv.Itoa(replicas),
		"transaction.state.log.replication.factor":         strconv.Itoa(replicas),
		"transaction.state.log.min.isr":                    strconv.Itoa(inSync),
		"share.coordinator.state.topic.replication.factor": strconv.Itoa(replicas),
		"share.coordinator.state.topic.min.isr":            strconv.Itoa(inSync),

		// Tests of workers that hang wait for locks shorter than the default minimum of 15 s.
		"group.share.min.record.lock.duration.ms": "1000",

		"auto.create.topics.enable":        "false",
		"group.initial.rebalance.delay.ms": "0",
		"group.min.session.timeout.ms":     "1000",
		"auto.leader.rebalance.enable":     "false",
		"broker.heartbeat.interval.ms":     "500",
		"broker.session.timeout.ms":        strconv.FormatInt(BrokerSession.Milliseconds(), 10),

		// Small values for a small heap and a fast start. The defaults are 50 partitions and 128 MB for the cleaner.
		"offsets.topic.num.partitions":                 strconv.Itoa(InternalPartitions),
		"transaction.state.log.num.partitions":         strconv.Itoa(InternalPartitions),
		"share.coordinator.state.topic.num.partitions": strconv.Itoa(InternalPartitions),
		"log.cleaner.dedupe.buffer.size":               "8388608",
	}
	if n.oauth != nil {
		settings["listeners"] += ",OAUTH://" + n.oauth.addr()
		settings["advertised.listeners"] += ",OAUTH://" + n.oauth.addr()
		settings["listener.security.protocol.map"] += ",OAUTH:SASL_PLAINTEXT"
		settings["listener.name.oauth.sasl.enabled.mechanisms"] = "OAUTHBEARER"
		settings["listener.name.oauth.oauthbearer.sasl.jaas.config"] = "org.apache.kafka.common.security.oauthbearer." +
			`OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`
	}
	maps.Copy(settings, more)

	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		// In a properties file, a backslash starts an escape and a line break ends the setting.
		value := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(settings[key])
		fmt.Fprintf(&b, "%s=%s\n", key, value)
	}
	return b.String()
}
