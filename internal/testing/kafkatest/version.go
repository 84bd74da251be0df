package kafkatest

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/xml"
)

//go:embed pom.xml
var pom []byte

// BeforeShareGroups is a version of Apache Kafka that does not offer share groups, for Options.Version.
const BeforeShareGroups = "4.1.1"

// EnvVersion names the environment variable with the version that tests start instead of Version, unless they ask for
// another one.
const EnvVersion = "KAFKA_TEST_VERSION"

// Version is the version of Apache Kafka that this package starts by default, as pom.xml pins it.
func Version() string {
	var project struct {
		Version string `xml:"properties>kafka.version"`
	}
	// The file is embedded, and a test checks that it can be parsed.
	_ = xml.Unmarshal(pom, &project)
	return project.Version
}

// jarsKey identifies a set of jars by the version and a digest of pom.xml, which also pins other libraries, such as log4j.
func jarsKey(version string) string {
	sum := sha256.Sum256(pom)
	return version + "-" + hex.EncodeToString(sum[:4])
}
