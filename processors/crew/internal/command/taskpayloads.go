package command

// Task is a task of DECLARE_TASKS and ADD_TASK.
type Task struct {
	TaskID      string   `json:"taskId" crew:"task,required"`
	Role        string   `json:"role" crew:"id,required"`
	Description string   `json:"description" crew:"text"`
	DependsOn   []string `json:"dependsOn" crew:"task,max=100"`
	Files       []string `json:"files" crew:"path,max=500"`
	Status      string   `json:"status" crew:"name"`
	Priority    int      `json:"priority"`
}

// DeclareTasks adds tasks.
type DeclareTasks struct {
	Tasks []Task `json:"tasks" crew:"task,max=500,required"`
}

// AddTask adds a task.
type AddTask struct {
	TaskID      string   `json:"taskId" crew:"task,required"`
	Role        string   `json:"role" crew:"id,required"`
	Description string   `json:"description" crew:"text"`
	DependsOn   []string `json:"dependsOn" crew:"task,max=100"`
	Files       []string `json:"files" crew:"path,max=500"`
	Status      string   `json:"status" crew:"name"`
	Priority    int      `json:"priority"`
}

// CompleteTask says that a task is done. TaskID is empty for the agent's own task.
type CompleteTask struct {
	TaskID  string `json:"taskId" crew:"task"`
	Summary string `json:"summary" crew:"text"` // Decode cuts it to 10,000 characters
	Status  string `json:"status" crew:"name"`
	Output  string `json:"output" crew:"text"`
}

// PauseTask pauses a task.
type PauseTask struct {
	TaskID string `json:"taskId" crew:"task,required"`
}

// ResumeTask resumes a paused task.
type ResumeTask struct {
	TaskID string `json:"taskId" crew:"task,required"`
}

// RetryTask makes a failed task ready.
type RetryTask struct {
	TaskID string `json:"taskId" crew:"task,required"`
}

// ReopenTask makes a task that is done ready.
type ReopenTask struct {
	TaskID string `json:"taskId" crew:"task,required"`
}

// SkipTask skips a task.
type SkipTask struct {
	TaskID string `json:"taskId" crew:"task,required"`
}

// CancelTask cancels a task.
type CancelTask struct {
	TaskID string `json:"taskId" crew:"task,required"`
}

// ForceReady makes a task ready whose dependencies are not done.
type ForceReady struct {
	TaskID string `json:"taskId" crew:"task,required"`
}

// AddDependency makes a task wait for others.
type AddDependency struct {
	TaskID    string   `json:"taskId" crew:"task,required"`
	DependsOn []string `json:"dependsOn" crew:"task,max=20,required"`
}

// AssignTask gives a task to a child.
type AssignTask struct {
	TaskID  string `json:"taskId" crew:"task,required"`
	AgentID string `json:"agentId" crew:"id,required"`
}

// ReassignTask gives a task of one child to another.
type ReassignTask struct {
	TaskID  string `json:"taskId" crew:"task,required"`
	AgentID string `json:"agentId" crew:"id,required"`
}

// TaskStatus asks for the state of the tasks.
type TaskStatus struct{}

// QueryTasks asks for the tasks.
type QueryTasks struct{}

// ResetDag drops all tasks.
type ResetDag struct{}
