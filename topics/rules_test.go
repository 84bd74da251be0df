package topics

// The rules of the wire format, and the tests that pin them:
//
//	names, agent prefix                       TestEveryTopicBeginsWithTheAgentsName, TestAgentNamesAreTakenAsTheyAre
//	creation, partitions, retention           TestEnsure..., TestNewTopicsTakeTheCountOfThoseThatExist, TestLoopKeeps...
//	field order, nulls, compact               TestGoldenRecordsComeBackByteForByte, TestAbsentFieldsAreWrittenAsNull
//	doubles                                   TestDoublesArePrintedAsJavaDoes, TestDoublesComeBack
//	free-form values pass unchanged           TestFreeFormValuesPassByteForByte
//	escapes                                   TestTextIsNotEscapedBeyondNeed
//	unknown and absent fields                 TestNamesAreCaseSensitive..., TestAbsentAndNullFieldsAreZero
//	conversion of scalars                     TestScalarsAreConverted
//	values that are rejected                  TestWrongTypesArePoison, TestWhatIsNoRecordIsPoison
//	text after the first value                TestWhatFollowsTheFirstValueIsIgnored
//	legacy names of fields                    TestLegacyNamesAreReadAndTheLaterWins
//	tool result is an object                  TestResultThatIsNoObjectIsWrapped
//	message-output omits nulls                TestOutputLeavesNullFieldsOut
//	reply-to keeps its bytes                  TestRouteKeepsItsBytes, TestRouteTTLIsTheRetentionOfReplyTo
//	think-dlq in two shapes                   TestThinkFailureIsReadInBothShapes
//	camelCase names                           TestCamelCaseThinkResponsesAreRead, TestThinkResponseOfNothingIsPoison
//	null elements                             TestNullToolUsesAreLeftOutAndTheirPlacesKept, TestSpliceJoinsAndLeavesNullsOut
//	structured content                        TestTextOfContent
//	messages compared by value                TestValuesAreComparedByValue, TestDigestTellsMessagesApart...
