// Prints requests signed by the libraries that their providers publish, as JSON: GitHub's example deliveries, and one by Standard Webhooks.

import { createRequire } from 'node:module';
import { Webhooks } from '@octokit/webhooks';
import { Webhook } from 'standardwebhooks';

const secret = 'a secret of twenty-five ch';
const examples = createRequire(import.meta.url)('@octokit/webhooks-examples/api.github.com/index.json');
const webhooks = new Webhooks({ secret });
const github = [];
for (const { name, examples: payloads } of examples) {
  for (const payload of payloads) {
    const body = JSON.stringify(payload);
    const headers = {
      'X-GitHub-Event': name,
      'X-GitHub-Delivery': `delivery-${github.length}`,
      'X-Hub-Signature-256': await webhooks.sign(body),
    };
    github.push({ headers, body });
  }
}

const standardSecret = `whsec_${Buffer.from(secret).toString('base64')}`;
const now = new Date(1_700_000_000_000);
const body = JSON.stringify({ type: 'contact.created', data: { name: 'Zoë' } });
const signature = new Webhook(standardSecret).sign('msg_1', now, body);
const standard = { headers: { 'webhook-id': 'msg_1', 'webhook-timestamp': '1700000000', 'webhook-signature': signature }, body };

process.stdout.write(JSON.stringify({ secret, github, standardSecret, standard }));
