package kafkatest

// Reach is how Shared comes to the cluster of KAFKA_BOOTSTRAP_SERVERS.
var Reach = waitForExternal
