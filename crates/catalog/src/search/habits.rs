//! What people do with well-known apps, and what they wait for, most often first.
//!
//! An app is named by its collapsed names, with a stroke between them. A phrase is words that must all be there, with others for the same
//! after a stroke; after a slash is another phrase, for apps that have nothing for the first.

/// What people do with apps.
pub(super) const ACTIONS: &[(&str, &[&str])] = &[
    (
        "gmail",
        &[
            "send message|email|mail",
            "many|list|search|fetch message|email|mail",
            "reply",
            "label message|email",
            "get message|email",
            "create draft",
        ],
    ),
    (
        "microsoftoutlook|outlook",
        &[
            "send message|email|mail",
            "many|list|search message|email|mail",
            "reply",
            "create event",
            "create draft",
            "get message|email|mail",
        ],
    ),
    ("sendemail|smtp|resend|sendgrid|mailgun|mandrill|brevo|postmark", &["send email|mail"]),
    (
        "slack",
        &[
            "send|post message",
            "history channel/many|list message",
            "many|list user|member",
            "many|list channel",
            "upload file",
            "send wait response/create channel",
        ],
    ),
    ("telegram", &["send text message", "get file", "send photo", "send document", "send wait response/edit message", "send video|audio"]),
    (
        "discord|mattermost|webex|rocketchat|googlechat",
        &["send|create|post message|post", "many|list message|post", "create channel|space", "many|list member|user"],
    ),
    ("microsoftteams", &["send|create message", "many|list message", "create channel", "create meeting|task"]),
    (
        "whatsapp|whatsappbusinesscloud|twilio|vonage|messagebird|plivo",
        &["send message|sms|text", "get|download media", "make call", "send template"],
    ),
    (
        "googlesheets",
        &["append row|value", "get|read row|value", "update row|value", "append update row", "create spreadsheet", "clear sheet|value"],
    ),
    ("microsoftexcel|excel", &["append row", "get row", "update row|sheet|range", "append update", "lookup"]),
    (
        "airtable",
        &["create record", "search|many|list record", "update record", "create update record/upsert record", "get record", "delete record"],
    ),
    (
        "notion",
        &[
            "create database page/create page",
            "many database page/query database|source",
            "update database page/update page",
            "append block|text",
            "create page",
            "get database page/get page",
        ],
    ),
    (
        "baserow|nocodb|seatable|grist|coda|supabase|smartsheet|googlebigquery|bigquery|snowflake",
        &["create|insert|upsert row", "many|list row/get row", "update row", "execute|run query|sql", "get row", "delete row"],
    ),
    (
        "postgres|postgresql|mysql|microsoftsql|mssql|mariadb|questdb|timescaledb|oracledatabase|clickhouse|cratedb",
        &["execute|run query|sql", "insert row", "select row", "update row", "upsert|insert update row", "delete row|table"],
    ),
    ("mongodb", &["find document", "insert document", "update document", "aggregate document"]),
    ("redis", &["get value|key", "set value|key", "push list", "delete key", "pop list", "increment"]),
    (
        "googledrive",
        &["upload file", "search|many|list file", "download file", "create folder", "create file text/share file", "share file/move file"],
    ),
    (
        "dropbox|box|onedrive|microsoftonedrive|nextcloud|googlecloudstorage",
        &["upload file", "list|many|search file|folder|item", "download file", "create folder", "share|link file", "copy|move file"],
    ),
    ("awss3|s3|ftp|sftp", &["upload file", "download file", "many|list file", "create bucket|folder", "delete file"]),
    ("googlecalendar", &["create event", "many|list event", "update event", "delete event", "availability|free", "get event"]),
    (
        "calendly|calcom|zoom|gotowebinar|googlemeet",
        &["create meeting|link|webinar", "many|list meeting|event|webinar", "get meeting|event", "cancel|delete meeting|event"],
    ),
    ("googledocs", &["update|append document|text", "create document", "get document", "replace text"]),
    ("googleslides", &["create presentation", "replace text", "get page|slide"]),
    (
        "googletasks|todoist|microsofttodo|ticktick",
        &["create task", "many|list task", "complete|close|status task", "update task", "delete task", "get task"],
    ),
    ("googlecontacts", &["create contact", "search|many|list contact", "update contact", "get contact"]),
    ("googleanalytics|googlesearchconsole|matomo|plausible|mixpanel|posthog", &["report|get report|data", "query", "event"]),
    ("googleforms|typeform|jotform|tally|surveymonkey", &["many|list response|submission", "many|list form", "create form", "get form"]),
    (
        "openai|anthropic|googlegemini|gemini|mistral|mistralai|perplexity|groq|cohere|deepseek|ollama|azureopenai|xai",
        &[
            "message|create|chat model|completion|message|response",
            "generate image",
            "analyze image",
            "transcribe recording|audio",
            "generate audio",
            "create embedding",
        ],
    ),
    ("huggingface|replicate|stabilityai", &["run|create inference|prediction|image"]),
    ("elevenlabs|deepgram|assemblyai", &["text speech", "speech text", "transcribe"]),
    ("deepl|googletranslate", &["translate"]),
    ("bravesearch|serpapi|tavily|googlesearch|searxng|exa", &["search"]),
    ("firecrawl|apify|scrapingbee|browserless|jinaai", &["scrape|read url|page", "run actor|crawl", "crawl", "search"]),
    ("httprequest|http|webhook", &["request", "respond"]),
    (
        "github",
        &[
            "create issue",
            "get file",
            "edit|update file",
            "create file",
            "many|list issue/get issue repository/get issue",
            "create pull request",
        ],
    ),
    ("gitlab", &["create issue", "create merge request", "many|list issue/get issue", "get file", "edit|update file", "create file"]),
    ("bitbucket", &["create pull request", "many|list pull request", "many|list repository"]),
    (
        "jira|linear|youtrack|redmine|shortcut",
        &["create issue", "many|search|list issue", "update issue", "add|create comment", "get issue", "transition status"],
    ),
    (
        "asana|clickup|wrike|meistertask|teamwork|basecamp|taiga",
        &["create task", "many|list|search task", "update task", "get task", "add|create comment", "create project"],
    ),
    ("monday", &["create item", "change|update column", "many|list item", "update|add create", "get item", "create board"]),
    ("trello", &["create card", "update card", "many|list card/get card", "add|create comment", "get card"]),
    ("confluence", &["create page", "search|get content|page", "update page"]),
    (
        "hubspot",
        &["create update contact/create contact", "search|many contact", "create deal", "many|search deal", "get contact", "update deal"],
    ),
    (
        "salesforce",
        &[
            "create lead",
            "query|search|many record|object|lead",
            "create contact|record",
            "update lead|record",
            "create update lead/upsert",
            "create opportunity",
        ],
    ),
    (
        "pipedrive|zohocrm|copper|freshworkscrm|keap|activecampaign|gohighlevel|highlevel|close|attio",
        &[
            "create deal|lead|contact",
            "create person|contact",
            "search|many|list deal|person|lead|contact",
            "update deal|lead|contact",
            "create note|activity",
            "get deal|person|lead|contact",
        ],
    ),
    (
        "mailchimp|mailerlite|convertkit|kit|getresponse|klaviyo|sendy|brevo",
        &[
            "create|add member|subscriber|contact",
            "update member|subscriber|contact",
            "send campaign",
            "many|list member|subscriber|contact/get member|subscriber|contact",
            "create campaign",
        ],
    ),
    (
        "zendesk|freshdesk|servicenow|helpscout|zammad|freshservice|gorgias",
        &[
            "create ticket|conversation|incident",
            "many|list|search ticket|conversation|incident",
            "update ticket|incident",
            "reply",
            "get ticket|conversation|incident",
            "create user|contact",
        ],
    ),
    (
        "intercom",
        &["reply conversation", "create contact|lead|user", "search|many conversation|contact", "send message", "create conversation"],
    ),
    (
        "shopify|woocommerce|magento|magento2|bigcommerce",
        &[
            "many|list|search order/get order",
            "many|list|search product/get product",
            "create product",
            "update product",
            "create order",
            "get order",
        ],
    ),
    (
        "stripe|paddle|chargebee|square|paypal",
        &[
            "create customer|payment",
            "many|list invoice|charge|payment|transaction",
            "create invoice|link|charge",
            "get customer|charge",
            "many|list customer",
            "create refund",
        ],
    ),
    (
        "quickbooks|quickbooksonline|xero|harvest|invoiceninja|zohobooks|freshbooks",
        &["create invoice", "many|list invoice/get invoice", "create customer|contact", "create bill|payment", "many customer|contact"],
    ),
    (
        "wordpress|ghost|contentful|strapi|webflow|storyblok|sanity",
        &["create post|entry|item", "update post|entry|item", "many|list post|entry|item/get post|entry|item", "create page", "publish"],
    ),
    (
        "linkedin|facebook|facebookgraphapi|instagram|pinterest|mastodon|bluesky|threads",
        &["create|publish post|request", "many post/get post"],
    ),
    ("twitter|x", &["create tweet|post", "search tweet|post", "retweet|repost", "like tweet", "send message"]),
    ("reddit", &["create|submit post", "many post/search post/get post", "create comment|reply", "search post"]),
    ("youtube", &["upload video", "many|search|list video", "get video", "many|list playlist", "update video", "list comment"]),
    ("spotify", &["add playlist|queue", "search track|playlist", "get playlist track/get playlist", "create playlist"]),
    ("rssread|rss|hackernews", &["read", "many|list|top article|story|item"]),
    (
        "sentry|sentryio|pagerduty|datadog|grafana|opsgenie|uptimerobot",
        &[
            "many|list issue|incident|monitor|event/get issue|incident|monitor|event",
            "create incident|event|alert",
            "update issue|incident",
        ],
    ),
    (
        "netlify|vercel|circleci|jenkins|travisci",
        &[
            "trigger|create|deploy build|deployment|pipeline|job|deploy",
            "many|list deploy|deployment|pipeline|build",
            "get deploy|deployment",
        ],
    ),
    (
        "cloudflare|digitalocean|awslambda|awsec2",
        &["create record|droplet|instance", "invoke|run function", "many|list record|droplet|instance"],
    ),
    ("figma", &["get file", "many|list comment"]),
    ("pinecone|qdrant|weaviate|milvus|chroma", &["upsert|insert point|vector|document", "search|query|get point|vector|document"]),
    ("wikipedia", &["summary|search page|article"]),
    ("openweathermap|openmeteo|weather", &["current weather", "forecast"]),
];

/// What they wait for.
pub(super) const EVENTS: &[(&str, &[&str])] = &[
    (
        "telegram|whatsapp|whatsappbusinesscloud|slack|discord|microsoftteams|mattermost|webex|googlechat",
        &["message", "mention", "callback query", "reaction"],
    ),
    ("gmail|outlook|microsoftoutlook|imap|emailimap", &["message|email|mail received|arrived/message|email|mail"]),
    ("googlesheets|excel|microsoftexcel|baserow|nocodb|seatable|supabase", &["row added|created|inserted", "added updated", "row updated"]),
    ("airtable|notion|coda", &["page|record|item added|created", "page|record|item updated"]),
    (
        "googledrive|dropbox|box|onedrive|microsoftonedrive",
        &["changes folder/file created|added|uploaded", "changes file/file updated", "folder created"],
    ),
    ("googlecalendar", &["event created", "event started", "event updated", "event cancelled"]),
    ("github|gitlab|bitbucket", &["push", "pull|merge request", "issue", "release"]),
    ("jira|linear|youtrack", &["issue created", "issue updated", "comment created"]),
    ("asana|clickup|todoist|trello|monday", &["task|card|item created", "task|card|item updated", "status updated"]),
    (
        "hubspot|salesforce|pipedrive|zohocrm|copper|attio",
        &["contact|lead|person created", "deal|opportunity created", "contact|deal|lead updated|changed"],
    ),
    ("shopify|woocommerce", &["order created|placed", "order paid|updated", "customer created", "product created"]),
    (
        "stripe",
        &[
            "payment intent succeeded/charge succeeded",
            "checkout session completed",
            "invoice paid",
            "customer subscription created",
            "customer created",
        ],
    ),
    ("typeform|jotform|tally|googleforms|surveymonkey|formio", &["response|submission"]),
    (
        "calendly|calcom|acuityscheduling",
        &["invitee|booking|appointment created|scheduled", "invitee|booking|appointment cancelled|canceled"],
    ),
    ("zendesk|freshdesk|intercom|helpscout", &["ticket|conversation created", "ticket|conversation updated"]),
    ("mailchimp|mailerlite|convertkit", &["subscribe|subscriber", "unsubscribe"]),
];
