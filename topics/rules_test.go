package topics

// The rules of the wire format, and the tests that pin them:
//
//	names, agent prefix                       TestEveryTopicNameStartsWithTheAgentName, TestAgentNamesAreValidatedAndNotTrimmed
//	creation, partitions, retention           TestEnsure..., TestNewTopicsGetThePartitionCountOfExistingOnes, TestLoopTopic...
//	field order, nulls, compact               TestGoldenRecordsRoundTripByteForByte, TestAbsentFieldsAreWrittenAsNull
//	doubles                                   TestDoublesAreWrittenInJavasFormat, TestDoublesRoundTrip
//	free-form values pass unchanged           TestFreeFormValuesPassByteForByte
//	escapes                                   TestOnlyRequiredEscapesAreWritten
//	unknown and absent fields                 TestFieldNamesAreCaseSensitive..., TestAbsentAndNullFieldsAreZero
//	conversion of scalars                     TestScalarsAreConverted
//	values that are rejected                  TestWrongTypesArePoison, TestValuesThatAreNotRecordsArePoison
//	text after the first value                TestTextAfterTheFirstValueIsIgnored
//	legacy names of fields                    TestLegacyNamesAreReadAndTheLaterOneCounts
//	tool result is an object                  TestToolResultThatIsNotAnObjectIsWrapped
//	message-output omits nulls                TestOutputOmitsNullFields
//	reply-to keeps its bytes                  TestRouteIsWrittenWithTheBytesItWasReadFrom, TestRouteTTLIsTheRetentionOfReplyTo
//	think-dlq in two shapes                   TestThinkFailureIsReadInBothShapes
//	camelCase names                           TestCamelCaseThinkResponsesAreRead, TestThinkResponseWithoutKnownFieldsIsPoison
//	null elements                             TestNullToolUsesAreOmittedAndTheirIndexesKept, TestSpliceConcatenatesAndOmitsNulls
//	structured content                        TestTextReturnsTheReadableText
//	messages compared by value                TestEqualComparesJSONValues, TestDigestDependsOn...
